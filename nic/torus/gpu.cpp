#include "torus/gpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "device/cuda/driver_abi.h"

namespace pw::torus {
namespace {

using namespace pw::cuda;  // only for its declarations

// The few functions of the CUDA driver that are needed.
struct GpuDriver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*device_count)(int*) = nullptr;
  CUresult (*device_get)(CUdevice*, int) = nullptr;
  CUresult (*context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*stream_create)(CUstream*, unsigned, int) = nullptr;
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream) = nullptr;
  CUresult (*synchronize)(CUstream) = nullptr;
  bool available = false;

  GpuDriver() {
    const char* name = std::getenv("PEERWAY_CUDA_LIBRARY");
    void* library = dlopen(name != nullptr ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
    if (library == nullptr) return;
    bool all = true;
    const auto find = [&](auto& entry, const char* symbol) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, symbol));
      all &= entry != nullptr;
    };
    find(init, "cuInit");
    find(device_count, "cuDeviceGetCount");
    find(device_get, "cuDeviceGet");
    find(context_retain, "cuDevicePrimaryCtxRetain");
    find(context_push, "cuCtxPushCurrent_v2");
    find(context_pop, "cuCtxPopCurrent_v2");
    find(stream_create, "cuStreamCreateWithPriority");
    find(copy, "cuMemcpyAsync");
    find(synchronize, "cuStreamSynchronize");
    int devices = 0;
    available = all && init(0) == 0 && device_count(&devices) == 0 && devices > 0;
  }
};

const GpuDriver& gpu_driver() {
  static const GpuDriver driver;
  return driver;
}

struct GpuPlace {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

// Returns the stream, with its context current. It is kept until the process ends, like the primary context.
GpuPlace* gpu_place(int device) {
  static std::mutex mutex;
  // Never destroyed, because other threads may copy while the process ends.
  static auto& places = *new std::map<int, GpuPlace>;
  const GpuDriver& driver = gpu_driver();
  std::lock_guard lock(mutex);
  GpuPlace& place = places[device];
  CUdevice handle = 0;
  if (place.context == nullptr &&
      (driver.device_get(&handle, device) != 0 || driver.context_retain(&place.context, handle) != 0))
    return nullptr;
  if (driver.context_push(place.context) != 0) return nullptr;
  constexpr unsigned kWaitsForNone = 1;  // CU_STREAM_NON_BLOCKING
  if (place.stream != nullptr || driver.stream_create(&place.stream, kWaitsForNone, 0) == 0) return &place;
  CUcontext popped;
  driver.context_pop(&popped);
  return nullptr;
}

}  // namespace

bool gpu_available() { return gpu_driver().available; }

bool gpu_copy(void* to, const void* from, uint64_t bytes, int device) {
  const GpuDriver& driver = gpu_driver();
  const GpuPlace* place = driver.available ? gpu_place(device) : nullptr;
  if (place == nullptr) return false;
  const bool done = driver.copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes,
                                place->stream) == 0 &&
                    driver.synchronize(place->stream) == 0;
  CUcontext popped;
  driver.context_pop(&popped);
  return done;
}

}  // namespace pw::torus
