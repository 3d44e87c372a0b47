#include "bench/gpu.h"

#include <dlfcn.h>

#include "base/format.h"
#include "bench/kernels.h"
#include "bench/stream.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::bench {

// The part of the driver that only benchmarks use, from cuda.h; handles are plain pointers here.
struct Gpu::Driver {
  static constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  static constexpr int kMajor = 75;              // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  static constexpr int kMinor = 76;

  int (*init)(unsigned) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*begin)(void*, int) = nullptr;
  int (*end)(void*, void**) = nullptr;
  int (*instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*replay)(void*, void*) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*destroy_exec)(void*) = nullptr;
  int (*load)(void**, const void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  int (*allocate)(uint64_t*, size_t) = nullptr;
  int (*release)(uint64_t) = nullptr;
  int (*copy)(uint64_t, uint64_t, size_t) = nullptr;
  int (*name)(int, const char**) = nullptr;

  Driver() {
    const std::string library = settings::cuda_library.text();
    void* handle = dlopen(library.empty() ? "libcuda.so.1" : library.c_str(), RTLD_NOW);
    if (handle == nullptr) throw Error(PW_UNAVAILABLE, format("no NVIDIA driver: {}", dlerror()));
    get(handle, init, "cuInit");
    get(handle, device, "cuDeviceGet");
    get(handle, attribute, "cuDeviceGetAttribute");
    get(handle, retain, "cuDevicePrimaryCtxRetain");
    get(handle, set_current, "cuCtxSetCurrent");
    get(handle, begin, "cuStreamBeginCapture_v2");
    get(handle, end, "cuStreamEndCapture");
    get(handle, instantiate, "cuGraphInstantiateWithFlags");
    get(handle, replay, "cuGraphLaunch");
    get(handle, destroy, "cuGraphDestroy");
    get(handle, destroy_exec, "cuGraphExecDestroy");
    get(handle, load, "cuModuleLoadData");
    get(handle, function, "cuModuleGetFunction");
    get(handle, launch, "cuLaunchKernel");
    get(handle, allocate, "cuMemAlloc_v2");
    get(handle, release, "cuMemFree_v2");
    get(handle, copy, "cuMemcpy");
    get(handle, name, "cuGetErrorName");
  }

  template <typename Function>
  static void get(void* handle, Function& pointer, const char* symbol) {
    pointer = reinterpret_cast<Function>(dlsym(handle, symbol));
    if (pointer == nullptr)
      throw Error(PW_UNAVAILABLE, format("the NVIDIA driver has no {}; a newer one is needed", symbol));
  }
};

Gpu::Gpu(pw_device device) : driver_(std::make_shared<const Driver>()), ordinal_(device.index) {
  int handle = 0;
  check(driver_->init(0), "cuInit");
  check(driver_->device(&handle, ordinal_), "cuDeviceGet");
  check(driver_->retain(&context_, handle), "cuDevicePrimaryCtxRetain");
  enter();
}

void Gpu::enter() const { check(driver_->set_current(context_), "cuCtxSetCurrent"); }

void Gpu::check(int result, const char* call) const {
  if (result == 0) return;
  const char* name = nullptr;
  driver_->name(result, &name);
  throw Error(PW_DEVICE, format("{} of a benchmark: {}", call, name == nullptr ? "unknown" : name));
}

Gpu::Graph::Graph(const Gpu& gpu, pw_stream stream, const std::function<void()>& body) : gpu_(&gpu) {
  const Driver& driver = *gpu.driver_;
  void *graph = nullptr, *exec = nullptr;
  gpu.check(driver.begin(stream.queue, Driver::kCaptureThreadLocal), "cuStreamBeginCapture");
  try {
    body();
  } catch (...) {
    driver.end(stream.queue, &graph);
    if (graph != nullptr) driver.destroy(graph);
    throw;
  }
  gpu.check(driver.end(stream.queue, &graph), "cuStreamEndCapture");
  const int result = driver.instantiate(&exec, graph, 0);
  driver.destroy(graph);
  gpu.check(result, "cuGraphInstantiateWithFlags");
  exec_ =
      std::shared_ptr<void>(exec, [kept = gpu.driver_](void* made_exec) { kept->destroy_exec(made_exec); });
}

void Gpu::Graph::launch(pw_stream stream) const {
  gpu_->check(gpu_->driver_->replay(exec_.get(), stream.queue), "cuGraphLaunch");
}

void* Gpu::kernel(const char* name) const {
  if (module_ == nullptr) {
    int major = 0, minor = 0, device = 0;
    check(driver_->device(&device, ordinal_), "cuDeviceGet");
    check(driver_->attribute(&major, Driver::kMajor, device), "cuDeviceGetAttribute");
    check(driver_->attribute(&minor, Driver::kMinor, device), "cuDeviceGetAttribute");
    const std::string image = bench_kernels(10 * major + minor);
    check(driver_->load(&module_, image.data()), "loading the kernels");
  }
  void* function = nullptr;
  check(driver_->function(&function, module_, name), name);
  return function;
}

void Gpu::launch(void* kernel, unsigned blocks, unsigned threads, pw_stream stream, void** arguments) const {
  check(driver_->launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream.queue, arguments, nullptr),
        "cuLaunchKernel");
}

std::shared_ptr<void> Gpu::allocate(uint64_t bytes) const {
  uint64_t address = 0;
  check(driver_->allocate(&address, bytes), "cuMemAlloc");
  return {reinterpret_cast<void*>(address),
          [kept = driver_](void* memory) { kept->release(reinterpret_cast<uint64_t>(memory)); }};
}

void Gpu::copy(void* to, const void* from, uint64_t bytes) const {
  check(driver_->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes), "cuMemcpy");
}

}  // namespace pw::bench
