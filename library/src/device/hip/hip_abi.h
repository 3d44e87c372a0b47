// The part of HIP's binary interface that Peerway calls, so that it builds with no ROCm. Facts of that
// interface (ROCm 6 and 7), under its own names; library/tests/python/test_hip_abi.py compares them with
// HIP's headers where ROCm is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/driver_abi.h"

namespace pw::hip {

using cuda::CUdevice;
using cuda::CUresult;
using cuda::CUstream;
using cuda::CUuuid;

// X(name, value)
#define PW_HIP_CONSTANTS(X)                                 \
  X(hipSuccess, 0)                                          \
  X(hipErrorInvalidValue, 1)                                \
  X(hipErrorOutOfMemory, 2)                                 \
  X(hipErrorDeinitialized, 4)                               \
  X(hipErrorNoDevice, 100)                                  \
  X(hipErrorInvalidContext, 201)                            \
  X(hipErrorNotFound, 500)                                  \
  X(hipErrorNotReady, 600)                                  \
  X(hipErrorPeerAccessAlreadyEnabled, 704)                  \
  X(hipErrorHostMemoryAlreadyRegistered, 712)               \
  X(hipErrorNotSupported, 801)                              \
  X(hipMemoryTypeUnregistered, 0)                           \
  X(hipMemoryTypeHost, 1)                                   \
  X(hipMemoryTypeDevice, 2)                                 \
  X(hipMemoryTypeManaged, 3)                                \
  X(hipMemoryTypeUnified, 11)                               \
  X(hipMemcpyDefault, 4)                                    \
  X(hipStreamCaptureModeRelaxed, 2)                         \
  X(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                   \
  X(HIP_POINTER_ATTRIBUTE_BUFFER_ID, 7)                     \
  X(HIP_POINTER_ATTRIBUTE_IS_MANAGED, 8)                    \
  X(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                \
  X(hipDeviceAttributeCanUseHostPointerForRegisteredMem, 4) \
  X(hipDeviceAttributeMaxPitch, 58)                         \
  X(hipDeviceAttributeMemoryBusWidth, 59)                   \
  X(hipDeviceAttributeMemoryClockRate, 60)                  \
  X(hipDeviceAttributeMultiprocessorCount, 63)              \
  X(hipDeviceAttributePciBusId, 67)                         \
  X(hipDeviceAttributePciDeviceId, 68)                      \
  X(hipDeviceAttributePciDomainID, 69)                      \
  X(hipDeviceAttributeHdpMemFlushCntl, 10005)               \
  X(hipDeviceAttributeIsLargeBar, 10011)                    \
  X(hipDeviceAttributeWallClockRate, 10017)

enum : int {
#define PW_HIP_ENUMERATOR(name, value) name = value,
  PW_HIP_CONSTANTS(PW_HIP_ENUMERATOR)
#undef PW_HIP_ENUMERATOR
};

// A macro in hip_runtime_api.h, so it needs a name of ours here.
inline constexpr unsigned kMallocFinegrained = 1;  // hipDeviceMallocFinegrained

/// A link type of hipExtGetLinkTypeAndHopCount, from hsa_amd_link_info_type_t (hsa_ext_amd.h).
inline constexpr uint32_t kLinkXgmi = 4;

struct HIP_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void* srcHost;
  void* srcDevice;
  void* srcArray;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void* dstHost;
  void* dstDevice;
  void* dstArray;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};

/// hipDeviceProp_tR0600, of which only the architecture's name is read: "gfx90a:sramecc+:xnack-".
struct hipDeviceProp {
  char others[1160];
  char gcnArchName[256];
  char more[56];
};

// X(function of CUDA's driver, HIP's function). These have the same parameters, so that HIP's are called in
// the place of the others.
#define PW_HIP_SAME(X)                                                                               \
  X(cuInit, hipInit)                                                                                 \
  X(cuDriverGetVersion, hipRuntimeGetVersion)                                                        \
  X(cuGetErrorName, hipDrvGetErrorName)                                                              \
  X(cuGetErrorString, hipDrvGetErrorString)                                                          \
  X(cuDeviceGetCount, hipGetDeviceCount)                                                             \
  X(cuDeviceGet, hipDeviceGet)                                                                       \
  X(cuDeviceGetName, hipDeviceGetName)                                                               \
  X(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)                                                   \
  X(cuCtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange)                                    \
  X(cuMemFree, hipFree)                                                                              \
  X(cuMemHostRegister, hipHostRegister)                                                              \
  X(cuMemHostUnregister, hipHostUnregister)                                                          \
  X(cuMemHostGetDevicePointer, hipHostGetDevicePointer)                                              \
  X(cuIpcGetMemHandle, hipIpcGetMemHandle)                                                           \
  X(cuIpcOpenMemHandle, hipIpcOpenMemHandle)                                                         \
  X(cuIpcCloseMemHandle, hipIpcCloseMemHandle)                                                       \
  X(cuStreamCreateWithPriority, hipStreamCreateWithPriority)                                         \
  X(cuStreamDestroy, hipStreamDestroy)                                                               \
  X(cuStreamQuery, hipStreamQuery)                                                                   \
  X(cuStreamSynchronize, hipStreamSynchronize)                                                       \
  X(cuLaunchHostFunc, hipLaunchHostFunc)                                                             \
  X(cuEventCreate, hipEventCreateWithFlags)                                                          \
  X(cuEventDestroy, hipEventDestroy)                                                                 \
  X(cuEventRecord, hipEventRecord)                                                                   \
  X(cuStreamWaitEvent, hipStreamWaitEvent)                                                           \
  X(cuStreamWriteValue64, hipStreamWriteValue64)                                                     \
  X(cuModuleLoadData, hipModuleLoadData)                                                             \
  X(cuModuleUnload, hipModuleUnload)                                                                 \
  X(cuModuleGetFunction, hipModuleGetFunction)                                                       \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuStreamBeginCapture, hipStreamBeginCapture)                                                     \
  X(cuStreamEndCapture, hipStreamEndCapture)                                                         \
  X(cuGraphInstantiate, hipGraphInstantiateWithFlags)                                                \
  X(cuGraphLaunch, hipGraphLaunch)                                                                   \
  X(cuGraphExecDestroy, hipGraphExecDestroy)                                                         \
  X(cuGraphDestroy, hipGraphDestroy)                                                                 \
  X(cuLaunchKernel, hipModuleLaunchKernel)

// X(HIP's function, parameters...): those that hip_driver.cpp calls.
#define PW_HIP_CALLS(X)                                           \
  X(hipGetDevice, int*)                                           \
  X(hipSetDevice, int)                                            \
  X(hipDeviceGetUuid, CUuuid*, CUdevice)                          \
  X(hipDeviceGetAttribute, int*, int, int)                        \
  X(hipGetDevicePropertiesR0600, hipDeviceProp*, int)             \
  X(hipExtGetLinkTypeAndHopCount, int, int, uint32_t*, uint32_t*) \
  X(hipDeviceEnablePeerAccess, int, unsigned)                     \
  X(hipDrvPointerGetAttributes, unsigned, int*, void**, void*)    \
  X(hipMemGetAddressRange, void**, size_t*, void*)                \
  X(hipExtMallocWithFlags, void**, size_t, unsigned)              \
  X(hipMemsetAsync, void*, int, size_t, CUstream)                 \
  X(hipMemcpy, void*, const void*, size_t, int)                   \
  X(hipMemcpyAsync, void*, const void*, size_t, int, CUstream)    \
  X(hipMemcpyParam2DAsync, const cuda::CUDA_MEMCPY2D*, CUstream)  \
  X(hipDrvMemcpy3DAsync, const HIP_MEMCPY3D*, CUstream)           \
  X(hipStreamGetDevice, CUstream, CUdevice*)

/// Of HSA, HIP's library beneath: exports memory as a dma-buf, whose byte `*offset` is the memory's first.
using ExportDmaBuf = int (*)(const void* address, size_t bytes, int* descriptor, uint64_t* offset);

}  // namespace pw::hip
