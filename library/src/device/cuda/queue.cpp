#include "device/cuda/queue.h"

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/engine.h"

namespace pw::cuda {
namespace {

std::string text_of(const Copy& copy) {
  return format("copying {} bytes from {} to {}", copy.layout.shape.bytes(),
                static_cast<const void*>(copy.from), static_cast<void*>(copy.to));
}

CUdeviceptr device_pointer(const std::byte* address) { return reinterpret_cast<CUdeviceptr>(address); }

CUDA_MEMCPY2D rows(const EnginePiece& piece) {
  CUDA_MEMCPY2D copy{};
  // The driver finds out where each address is.
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = device_pointer(piece.from);
  copy.srcPitch = piece.from_pitch;
  copy.dstDevice = device_pointer(piece.to);
  copy.dstPitch = piece.to_pitch;
  copy.WidthInBytes = piece.width;
  copy.Height = piece.height;
  return copy;
}

CUDA_MEMCPY3D planes(const EnginePiece& piece) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = device_pointer(piece.from);
  copy.srcPitch = piece.from_pitch;
  copy.srcHeight = piece.from_rows;
  copy.dstDevice = device_pointer(piece.to);
  copy.dstPitch = piece.to_pitch;
  copy.dstHeight = piece.to_rows;
  copy.WidthInBytes = piece.width;
  copy.Height = piece.height;
  copy.Depth = piece.depth;
  return copy;
}

}  // namespace

CudaQueue::CudaQueue(const Gpu& gpu, CUcontext context, Pins& pins, FindKernels kernels)
    : gpu_(gpu), context_(context), pins_(pins), find_kernels_(std::move(kernels)) {
  const Driver& driver = gpu_.driver;
  const Current current(driver, context_);
  int least = 0, greatest = 0;
  driver.check(driver.cuCtxGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  driver.check(driver.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, greatest),
               "making a stream");
  CUresult result = driver.cuMemAlloc(&finished_, sizeof(unsigned));
  if (result == CUDA_SUCCESS) result = driver.cuMemsetD8Async(finished_, 0, sizeof(unsigned), stream_);
  if (result != CUDA_SUCCESS) {
    if (finished_ != 0) driver.cuMemFree(finished_);
    driver.cuStreamDestroy(stream_);
    driver.check(result, "making a stream's counter");
  }
}

CudaQueue::~CudaQueue() {
  const Current current(gpu_.driver, context_);
  gpu_.driver.cuStreamSynchronize(stream_);  // until then the counter below is in use
  if (aside_ != nullptr) {
    gpu_.driver.cuStreamSynchronize(aside_);
    gpu_.driver.cuStreamDestroy(aside_);
    gpu_.driver.cuEventDestroy(reached_);
  }
  gpu_.driver.cuMemFree(finished_);
  gpu_.driver.cuStreamDestroy(stream_);
}

pw_status CudaQueue::failed(CUresult result, const std::string& action) const {
  return fail(Driver::status(result), format("{}: {}: {}", gpu_.name(), action, gpu_.driver.text(result)));
}

uint64_t CudaQueue::as_seen(const void* address) const { return address_on(gpu_, pins_, address); }

Copy CudaQueue::as_seen(const Copy& copy) const {
  if (gpu_.same_host_address) return copy;
  Copy seen = copy;
  seen.to = reinterpret_cast<std::byte*>(as_seen(copy.to));
  seen.from = reinterpret_cast<const std::byte*>(as_seen(copy.from));
  return seen;
}

pw_status CudaQueue::copy(const Copy& copy, CopyBy by) {
  if (copy.layout.shape.bytes() == 0) return PW_OK;
  const Current current(gpu_.driver, context_);
  std::lock_guard lock(mutex_);
  return by == CopyBy::kernel ? by_kernel(copy, nullptr, 0) : by_engine(as_seen(copy));
}

pw_status CudaQueue::write(uint64_t* word, uint64_t value) {
  const Current current(gpu_.driver, context_);
  std::lock_guard lock(mutex_);
  return store(word, value);
}

CUresult CudaQueue::open_aside() {
  const Driver& driver = gpu_.driver;
  CUresult result = driver.cuEventCreate(&reached_, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return result;
  int least = 0, greatest = 0;
  result = driver.cuCtxGetStreamPriorityRange(&least, &greatest);
  if (result == CUDA_SUCCESS)
    result = driver.cuStreamCreateWithPriority(&aside_, CU_STREAM_NON_BLOCKING, greatest);
  if (result != CUDA_SUCCESS) driver.cuEventDestroy(reached_);
  return result;
}

// A write between two copies of one stream stalls the copy engine for some microseconds; a second stream that
// waits for an event of the first does not.
pw_status CudaQueue::write_aside(uint64_t* word, uint64_t value) {
  const Current current(gpu_.driver, context_);
  std::lock_guard lock(mutex_);
  CUresult result = aside_ == nullptr ? open_aside() : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) result = gpu_.driver.cuEventRecord(reached_, stream_);
  if (result == CUDA_SUCCESS) result = gpu_.driver.cuStreamWaitEvent(aside_, reached_, 0);
  return result == CUDA_SUCCESS ? store(aside_, word, value)
                                : failed(result, "ordering a write after copies");
}

pw_status CudaQueue::copy_and_write(const Copy& copy, CopyBy by, uint64_t* word, uint64_t value) {
  const Current current(gpu_.driver, context_);
  std::lock_guard lock(mutex_);
  if (copy.layout.shape.bytes() == 0) return store(word, value);
  if (by == CopyBy::kernel) return by_kernel(copy, word, value);
  const pw_status status = by_engine(as_seen(copy));
  return status == PW_OK ? store(word, value) : status;
}

bool CudaQueue::idle(pw_status& status) {
  const Current current(gpu_.driver, context_);
  CUresult result = gpu_.driver.cuStreamQuery(stream_);
  if (result == CUDA_SUCCESS && aside_ != nullptr) result = gpu_.driver.cuStreamQuery(aside_);
  status =
      result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY ? PW_OK : failed(result, "work on a stream");
  return result != CUDA_ERROR_NOT_READY;
}

CUresult CudaQueue::enqueue(const EnginePiece& piece) const {
  const Driver& driver = gpu_.driver;
  if (piece.depth > 1) {
    const CUDA_MEMCPY3D copy = planes(piece);
    return driver.cuMemcpy3DAsync(&copy, stream_);
  }
  if (piece.height > 1) {
    const CUDA_MEMCPY2D copy = rows(piece);
    return driver.cuMemcpy2DAsync(&copy, stream_);
  }
  return driver.cuMemcpyAsync(device_pointer(piece.to), device_pointer(piece.from), piece.width, stream_);
}

pw_status CudaQueue::by_engine(const Copy& copy) {
  CUresult result = CUDA_SUCCESS;
  for_each_engine_piece(copy, gpu_.max_pitch, [&](const EnginePiece& piece) {
    result = enqueue(piece);
    return result == CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? PW_OK : failed(result, text_of(copy));
}

// Copies and stores the signal in one launch if the copy fits one; `word` may be null.
pw_status CudaQueue::by_kernel(const Copy& whole, uint64_t* word, uint64_t value) {
  std::string why_not;
  const Kernels* kernels = find_kernels_(why_not);
  if (kernels == nullptr)
    return fail(PW_UNAVAILABLE, format("{} has no copy kernels: {}", gpu_.name(), why_not));
  const Copy copy = as_seen(whole);
  const bool fused = fits_one_launch(copy);
  CUresult result = CUDA_SUCCESS;
  for_each_launch(copy, [&](const Copy& part) {
    CopyLaunch launch = make_launch(part, gpu_.sms);
    if (fused && word != nullptr) {
      launch.arguments.signal = reinterpret_cast<unsigned long long*>(as_seen(word));
      launch.arguments.value = value;
    }
    launch.arguments.finished = reinterpret_cast<unsigned*>(finished_);
    result = kernels->launch(launch, stream_);
    return result == CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return failed(result, text_of(copy) + " by kernel");
  return fused || word == nullptr ? PW_OK : store(word, value);
}

pw_status CudaQueue::store(CUstream stream, uint64_t* word, uint64_t value) {
  if (!gpu_.writes_words)
    return fail(PW_UNSUPPORTED,
                format("{} has no 64-bit stream memory operations; update the driver", gpu_.name()));
  // The default write includes a fence for the whole system, so everything that the stream did before is
  // visible first.
  const CUresult result =
      gpu_.driver.cuStreamWriteValue64(stream, as_seen(word), value, CU_STREAM_WRITE_VALUE_DEFAULT);
  return result == CUDA_SUCCESS ? PW_OK
                                : failed(result, format("writing a signal at {}", static_cast<void*>(word)));
}

}  // namespace pw::cuda
