// The program's streams on a CUDA device.
#include "base/format.h"
#include "base/status.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/runner.h"

namespace pw::cuda {

void* CudaDevice::make_stream() {
  const Current current(driver_, context());
  CUstream stream = nullptr;
  driver_.check(driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "making a stream");
  return stream;
}

void CudaDevice::free_stream(void* stream) noexcept {
  const Current current(driver_, context_.load());
  driver_.cuStreamSynchronize(static_cast<CUstream>(stream));
  driver_.cuStreamDestroy(static_cast<CUstream>(stream));
}

bool CudaDevice::owns_stream(void* stream, std::string& why_not) {
  const Current current(driver_, context());
  CUcontext its = nullptr;
  const CUresult result = driver_.cuStreamGetCtx(static_cast<CUstream>(stream), &its);
  if (result != CUDA_SUCCESS) {
    why_not = format("the driver does not know it: {}", driver_.text(result));
    return false;
  }
  if (its == context()) return true;
  why_not = format("it belongs to another device or {} context", driver_.vendor.api);
  return false;
}

pw_status CudaDevice::call(void* stream, void (*function)(void*), void* user) {
  const Current current(driver_, context());
  const CUresult result = driver_.cuLaunchHostFunc(static_cast<CUstream>(stream), function, user);
  return result == CUDA_SUCCESS ? PW_OK
                                : fail(Driver::status(result), format("{}: enqueueing a call of the host: {}",
                                                                      gpu_.name(), driver_.text(result)));
}

pw_status CudaDevice::copy_on(void* stream, const FlatCopy& copy) {
  if (copy.bytes == 0) return PW_OK;
  const Current current(driver_, context());
  const CUresult result =
      driver_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(copy.to), reinterpret_cast<CUdeviceptr>(copy.from),
                            copy.bytes, static_cast<CUstream>(stream));
  return result == CUDA_SUCCESS
             ? PW_OK
             : fail(Driver::status(result), format("{}: copying {} bytes from {} to {}: {}", gpu_.name(),
                                                   copy.bytes, copy.from, copy.to, driver_.text(result)));
}

bool CudaDevice::stream_idle(void* stream, pw_status& status) {
  const Current current(driver_, context());
  const CUresult result = driver_.cuStreamQuery(static_cast<CUstream>(stream));
  status = PW_OK;
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS)
    status =
        fail(Driver::status(result), format("{}: work on a stream: {}", gpu_.name(), driver_.text(result)));
  return true;
}

void CudaDevice::clear(void* address, uint64_t bytes) {
  const Current current(driver_, context());
  driver_.check(driver_.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(address), 0, bytes, nullptr),
                format("clearing {} bytes", bytes));
  driver_.check(driver_.cuStreamSynchronize(nullptr), format("clearing {} bytes", bytes));
}

const Kernels& CudaDevice::kernels_of_plans() {
  std::string why_not;
  const Kernels* ready = kernels(why_not);
  if (ready == nullptr) throw Error(PW_UNAVAILABLE, format("{} cannot run plans: {}", gpu_.name(), why_not));
  return *ready;
}

void CudaDevice::load_reduction(peerway::device::Element element, peerway::device::Combine combine) {
  const Kernels& ready = kernels_of_plans();
  const Current current(driver_, context());
  static_cast<void>(ready.reduction({element, combine}));
}

std::unique_ptr<Runner> CudaDevice::make_runner(const Program& program) {
  return std::make_unique<CudaRunner>(gpu_, context(), pins_, kernels_of_plans(), program);
}

}  // namespace pw::cuda
