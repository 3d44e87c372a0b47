// A test double of the part of HIP's run-time library that apps/hpl calls. Its GPU is the CPU: the memory is
// the host's, and work is done when it is enqueued. clang compiles with it for AMD GPUs, where ROCm is not
// installed; with HPL_ON_CPU kernels run on the CPU, one block after the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDefault = 4 };
enum hipMemoryType { hipMemoryTypeHost = 1, hipMemoryTypeDevice = 2 };
enum hipDeviceAttribute_t { hipDeviceAttributeClockRate = 5, hipDeviceAttributeMultiprocessorCount = 63 };
constexpr unsigned hipStreamNonBlocking = 1, hipEventDisableTiming = 2, hipHostMallocDefault = 0;

struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t of_x = 1, uint32_t of_y = 1, uint32_t of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};
struct hipUUID {
  char bytes[16];
};
struct hipDeviceProp_t {
  char name[256];
  hipUUID uuid;
  char gcnArchName[256];
};
struct hipPointerAttribute_t {
  hipMemoryType type;
};
struct ihipStream_t {
  int priority;
};
struct ihipEvent_t {
  std::chrono::steady_clock::time_point at;
};
using hipStream_t = ihipStream_t*;
using hipEvent_t = ihipEvent_t*;

inline const char* hipGetErrorString(hipError_t) { return "an error of the double of HIP"; }
inline hipError_t hipGetLastError() { return hipSuccess; }
inline hipError_t hipGetDeviceCount(int* count) { return *count = 1, hipSuccess; }
inline hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidValue; }
inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int) {
  *value = which == hipDeviceAttributeClockRate ? 1700000 : 110;
  return hipSuccess;
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  *properties = {"a double of an AMD GPU", {"0123456789abcde"}, "gfx90a:sramecc+:xnack-"};
  return hipSuccess;
}
inline hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 1, *greatest = -1, hipSuccess;
}
inline hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  if (flags != hipStreamNonBlocking || priority < -1 || priority > 1) return hipErrorInvalidValue;
  *stream = new ihipStream_t{priority};
  return hipSuccess;
}
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned flags) {
  return flags == 0 ? hipSuccess : hipErrorInvalidValue;
}
inline hipError_t hipEventCreate(hipEvent_t* event) { return *event = new ihipEvent_t{}, hipSuccess; }
inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return flags == hipEventDisableTiming ? hipEventCreate(event) : hipErrorInvalidValue;
}
inline hipError_t hipEventDestroy(hipEvent_t event) { return delete event, hipSuccess; }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  event->at = std::chrono::steady_clock::now();
  return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t from, hipEvent_t to) {
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return hipSuccess;
}

template <typename T>
hipError_t hipMalloc(T** memory, size_t bytes) {
  *memory = static_cast<T*>(std::malloc(bytes));
  return *memory == nullptr ? hipErrorOutOfMemory : hipSuccess;
}
inline hipError_t hipHostMalloc(void** memory, size_t bytes, unsigned flags) {
  return flags == hipHostMallocDefault ? hipMalloc(memory, bytes) : hipErrorInvalidValue;
}
inline hipError_t hipFree(void* memory) { return std::free(memory), hipSuccess; }
inline hipError_t hipHostFree(void* memory) { return std::free(memory), hipSuccess; }
inline hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  return *free = size_t{2} << 30, *total = size_t{4} << 30, hipSuccess;
}
inline hipError_t hipMemset(void* memory, int value, size_t bytes) {
  return std::memset(memory, value, bytes), hipSuccess;
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind, hipStream_t) {
  return std::memmove(to, from, bytes), hipSuccess;
}
inline hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void*) {
  attributes->type = hipMemoryTypeDevice;
  return hipSuccess;
}

#if defined(HPL_ON_CPU)

#define FAKE_BLOCK_THREADS 64
#include <cmath>

#include "block_on_cpu.h"

#define __device__
#define __global__
#define __launch_bounds__(...)

inline void atomicAdd(double* sum, double value) { *sum += value; }

namespace hpl {

constexpr int kRowThreads = 64, kThreads = 64;

template <typename... Parameters, typename... Arguments>
void launch(const char*, void (*kernel)(Parameters...), dim3 blocks, unsigned threads, hipStream_t,
            const Arguments&... arguments) {
  auto body = [&] { kernel(static_cast<Parameters>(arguments)...); };
  gridDim = {blocks.x, blocks.y, blocks.z};
  blockDim = {threads, 1, 1};
  for (blockIdx.z = 0; blockIdx.z < blocks.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < blocks.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x)
        fake_block::run([](void* of) { (*static_cast<decltype(body)*>(of))(); }, &body);
}

}  // namespace hpl

#else  // what clang calls where a kernel is launched

hipError_t __hipPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared = 0,
                                      hipStream_t stream = nullptr);
extern "C" hipError_t __hipPopCallConfiguration(dim3* blocks, dim3* threads, size_t* shared,
                                                hipStream_t* stream);
extern "C" hipError_t hipLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                                      size_t shared, hipStream_t stream);

#endif
