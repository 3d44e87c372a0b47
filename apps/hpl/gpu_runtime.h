// The run-time library of the GPU: CUDA's or, under CUDA's names, HIP's, whose functions are the same.
#ifndef HPL_GPU_RUNTIME_H
#define HPL_GPU_RUNTIME_H

#if defined(__HIP__)

#include <hip/hip_runtime.h>

#define HPL_ON_AMD

#define cudaDevAttrClockRate hipDeviceAttributeClockRate
#define cudaDevAttrMultiProcessorCount hipDeviceAttributeMultiprocessorCount
#define cudaDeviceAttr hipDeviceAttribute_t
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDeviceGetStreamPriorityRange hipDeviceGetStreamPriorityRange
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaError_t hipError_t
#define cudaEventCreate hipEventCreate
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDestroy hipEventDestroy
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeHost hipHostFree
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaMalloc hipMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemoryTypeHost hipMemoryTypeHost
#define cudaMemset hipMemset
#define cudaPointerAttributes hipPointerAttribute_t
#define cudaPointerGetAttributes hipPointerGetAttributes
#define cudaSetDevice hipSetDevice
#define cudaStreamCreateWithPriority hipStreamCreateWithPriority
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStreamWaitEvent hipStreamWaitEvent
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess

namespace hpl {
template <typename T>
hipError_t cudaMallocHost(T** memory, size_t bytes) {
  return hipHostMalloc(reinterpret_cast<void**>(memory), bytes, hipHostMallocDefault);
}
}  // namespace hpl

#else
#include <cuda_runtime.h>
#endif

#include <stdexcept>
#include <string>

namespace hpl {

inline void must(cudaError_t error, const char* action) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("hpl: ") + action + " failed: " + cudaGetErrorString(error));
}

#if !defined(HPL_ON_CPU)  // tests run kernels on a CPU
/// Launches a kernel; `action` is for the error.
template <typename... Parameters, typename... Arguments>
void launch(const char* action, void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
            cudaStream_t stream, const Arguments&... arguments) {
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
  must(cudaGetLastError(), action);
}
#endif

}  // namespace hpl

#endif
