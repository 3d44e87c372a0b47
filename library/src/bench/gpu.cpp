#include "bench/gpu.h"

#include "base/format.h"
#include "base/status.h"
#include "bench/kernels.h"
#include "device/cuda/driver.h"
#include "device/gpu_code.h"

namespace pw::bench {

using namespace cuda;

namespace {

constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, and that of HIP

CUstream stream_of(pw_stream stream) { return static_cast<CUstream>(stream.queue); }

}  // namespace

Gpu::Gpu(pw_device device) : ordinal_(device.index) {
  std::string why;
  driver_ = load_gpu_driver(device.kind, why);
  if (driver_ == nullptr) throw Error(PW_UNAVAILABLE, why);
  check(driver_->cuDevicePrimaryCtxRetain(&context_, ordinal_), "opening the GPU");
  enter();
}

void Gpu::enter() const {
  CUcontext now = nullptr;
  if (driver_->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == context_) return;
  check(driver_->cuCtxPushCurrent(context_), "entering the GPU's context");
}

void Gpu::check(int result, const char* call) const {
  if (result != CUDA_SUCCESS)
    throw Error(PW_DEVICE, format("{} of a benchmark: {}", call, driver_->text(result)));
}

Gpu::Graph::Graph(const Gpu& gpu, pw_stream stream, const std::function<void()>& body) : gpu_(&gpu) {
  const Driver& driver = *gpu.driver_;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  gpu.check(driver.cuStreamBeginCapture(stream_of(stream), kCaptureThreadLocal), "capturing a stream");
  try {
    body();
  } catch (...) {
    driver.cuStreamEndCapture(stream_of(stream), &graph);
    if (graph != nullptr) driver.cuGraphDestroy(graph);
    throw;
  }
  gpu.check(driver.cuStreamEndCapture(stream_of(stream), &graph), "capturing a stream");
  const CUresult result = driver.cuGraphInstantiate(&exec, graph, 0);
  driver.cuGraphDestroy(graph);
  gpu.check(result, "making a graph");
  exec_ = std::shared_ptr<CUgraphExec_st>(
      exec, [kept = gpu.driver_](CUgraphExec made_exec) { kept->cuGraphExecDestroy(made_exec); });
}

void Gpu::Graph::launch(pw_stream stream) const {
  gpu_->check(gpu_->driver_->cuGraphLaunch(exec_.get(), stream_of(stream)), "launching a graph");
}

CUfunction Gpu::kernel(const char* name) const {
  if (module_ == nullptr) {
    const std::string image = bench_kernels(*driver_, ordinal_);
    check(driver_->cuModuleLoadData(&module_, image.data()), "loading the kernels");
  }
  CUfunction function = nullptr;
  check(driver_->cuModuleGetFunction(&function, module_, name), name);
  return function;
}

void Gpu::launch(CUfunction kernel, unsigned blocks, unsigned threads, pw_stream stream,
                 void** arguments) const {
  check(
      driver_->cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream_of(stream), arguments, nullptr),
      "launching a kernel");
}

std::shared_ptr<void> Gpu::allocate(uint64_t bytes) const {
  CUdeviceptr address = 0;
  check(driver_->cuMemAlloc(&address, bytes), "allocating memory");
  return {reinterpret_cast<void*>(address),
          [kept = driver_](void* memory) { kept->cuMemFree(reinterpret_cast<CUdeviceptr>(memory)); }};
}

void Gpu::copy(void* to, const void* from, uint64_t bytes) const {
  check(driver_->cuMemcpy(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes),
        "copying memory");
}

}  // namespace pw::bench
