// The part of the CUDA driver's binary interface that Peerway calls, so that it builds with no CUDA toolkit.
// Facts of that interface, under its own names; library/tests/python/test_device_code.py compares every one
// of them with NVIDIA's cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUarray = struct CUarray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUhostFn = void (*)(void*);

// X(name, value)
#define PW_CUDA_CONSTANTS(X)                                              \
  X(CUDA_SUCCESS, 0)                                                      \
  X(CUDA_ERROR_INVALID_VALUE, 1)                                          \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                          \
  X(CUDA_ERROR_DEINITIALIZED, 4)                                          \
  X(CUDA_ERROR_STUB_LIBRARY, 34)                                          \
  X(CUDA_ERROR_NO_DEVICE, 100)                                            \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)                                      \
  X(CUDA_ERROR_NOT_FOUND, 500)                                            \
  X(CUDA_ERROR_NOT_READY, 600)                                            \
  X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                          \
  X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                       \
  X(CUDA_ERROR_NOT_SUPPORTED, 801)                                        \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                               \
  X(CU_MEMORYTYPE_HOST, 1)                                                \
  X(CU_MEMORYTYPE_DEVICE, 2)                                              \
  X(CU_MEMORYTYPE_UNIFIED, 4)                                             \
  X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1)                                \
  X(CU_STREAM_NON_BLOCKING, 1)                                            \
  X(CU_EVENT_DISABLE_TIMING, 2)                                           \
  X(CU_STREAM_WRITE_VALUE_DEFAULT, 0)                                     \
  X(CU_MEM_HANDLE_TYPE_NONE, 0)                                           \
  X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                          \
  X(CU_MEM_HANDLE_TYPE_FABRIC, 8)                                         \
  X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                     \
  X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                       \
  X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                \
  X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                  \
  X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1)                               \
  X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                  \
  X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                                    \
  X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                   \
  X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                               \
  X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10)                  \
  X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                            \
  X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                  \
  X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14)                        \
  X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)                              \
  X(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 18)                                \
  X(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 19)                           \
  X(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 20)                             \
  X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                                    \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                         \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                            \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                      \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                     \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                     \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)      \
  X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)         \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) \
  X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)     \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122)               \
  X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124)                           \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 128)                \
  X(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 133)                                 \
  X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)             \
  X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                    \
  X(CU_GRAPH_NODE_TYPE_CONDITIONAL, 13)                                   \
  X(CU_GRAPH_COND_TYPE_IF, 0)                                             \
  X(CU_GRAPH_COND_TYPE_WHILE, 1)                                          \
  X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)

enum : int {
#define PW_CUDA_ENUMERATOR(name, value) name = value,
  PW_CUDA_CONSTANTS(PW_CUDA_ENUMERATOR)
#undef PW_CUDA_ENUMERATOR
};

// Macros in cuda.h, so they need names of ours here.
inline constexpr unsigned kHostRegisterPortable = 1;    // CU_MEMHOSTREGISTER_PORTABLE
inline constexpr unsigned kHostRegisterDeviceMap = 2;   // CU_MEMHOSTREGISTER_DEVICEMAP
inline constexpr unsigned kConditionAssignDefault = 1;  // CU_GRAPH_COND_ASSIGN_DEFAULT

struct CUuuid {
  char bytes[16];
};
struct CUipcMemHandle {
  char reserved[64];
};
struct CUmemPoolPtrExportData {
  unsigned char reserved[64];
};
struct CUmemLocation {
  int type;
  int id;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
struct CUmemAllocationProp {
  int type;
  int requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
struct CUmemPoolProps {
  int allocType;
  int handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char gpuDirectRDMACapable;
  unsigned char reserved[53];
};
struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  int srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  int dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};
struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void* reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void* reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};

struct CUlaunchAttribute {
  int id;
  char pad[4];
  char value[64];
};
struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

// A node of a graph that decides at run time: its body is executed if, or as long as, its value is not 0.
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphConditionalHandle = uint64_t;
struct CUDA_CONDITIONAL_NODE_PARAMS {
  CUgraphConditionalHandle handle;
  int type;
  unsigned size;
  CUgraph* phGraph_out;
  CUcontext ctx;
};
struct CUgraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
};

// In drivers for CUDA 12.4 or newer; null in older ones.
#define PW_CUDA_NEWER_FUNCTIONS(X)                                                                           \
  X(cuGraphCreate, "cuGraphCreate", CUgraph*, unsigned)                                                      \
  X(cuGraphAddNode, "cuGraphAddNode", CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams*) \
  X(cuGraphGetNodes, "cuGraphGetNodes", CUgraph, CUgraphNode*, size_t*)                                      \
  X(cuGraphConditionalHandleCreate, "cuGraphConditionalHandleCreate", CUgraphConditionalHandle*, CUgraph,    \
    CUcontext, unsigned, unsigned)                                                                           \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", CUstream, CUgraph, const CUgraphNode*,       \
    const void*, size_t, int)

// X(name in cuda.h, exported symbol, parameters...). All are in every driver for CUDA 12.0 or newer.
#define PW_CUDA_FUNCTIONS(X)                                                                                \
  X(cuInit, "cuInit", unsigned)                                                                             \
  X(cuDriverGetVersion, "cuDriverGetVersion", int*)                                                         \
  X(cuGetErrorName, "cuGetErrorName", CUresult, const char**)                                               \
  X(cuGetErrorString, "cuGetErrorString", CUresult, const char**)                                           \
  X(cuDeviceGetCount, "cuDeviceGetCount", int*)                                                             \
  X(cuDeviceGet, "cuDeviceGet", CUdevice*, int)                                                             \
  X(cuDeviceGetName, "cuDeviceGetName", char*, int, CUdevice)                                               \
  X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", CUuuid*, CUdevice)                                               \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", int*, int, CUdevice)                                      \
  X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", int*, CUdevice, CUdevice)                               \
  X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", int*, int, CUdevice, CUdevice)                      \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext*, CUdevice)                             \
  X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", CUdevice, unsigned*, int*)                    \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", CUcontext*)                                                         \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                                                     \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext*)                                                      \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", CUcontext, unsigned)                                    \
  X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", int*, int*)                                 \
  X(cuPointerGetAttributes, "cuPointerGetAttributes", unsigned, int*, void**, CUdeviceptr)                  \
  X(cuMemAlloc, "cuMemAlloc_v2", CUdeviceptr*, size_t)                                                      \
  X(cuMemFree, "cuMemFree_v2", CUdeviceptr)                                                                 \
  X(cuMemsetD8Async, "cuMemsetD8Async", CUdeviceptr, unsigned char, size_t, CUstream)                       \
  X(cuMemcpy, "cuMemcpy", CUdeviceptr, CUdeviceptr, size_t)                                                 \
  X(cuMemcpyAsync, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, size_t, CUstream)                             \
  X(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", const CUDA_MEMCPY2D*, CUstream)                                  \
  X(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", const CUDA_MEMCPY3D*, CUstream)                                  \
  X(cuMemHostRegister, "cuMemHostRegister_v2", void*, size_t, unsigned)                                     \
  X(cuMemHostUnregister, "cuMemHostUnregister", void*)                                                      \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", CUdeviceptr*, void*, unsigned)               \
  X(cuIpcGetMemHandle, "cuIpcGetMemHandle", CUipcMemHandle*, CUdeviceptr)                                   \
  X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2", CUdeviceptr*, CUipcMemHandle, unsigned)                    \
  X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", CUdeviceptr)                                                \
  X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", size_t*, const CUmemAllocationProp*,    \
    int)                                                                                                    \
  X(cuMemCreate, "cuMemCreate", CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,          \
    unsigned long long)                                                                                     \
  X(cuMemRelease, "cuMemRelease", CUmemGenericAllocationHandle)                                             \
  X(cuMemAddressReserve, "cuMemAddressReserve", CUdeviceptr*, size_t, size_t, CUdeviceptr,                  \
    unsigned long long)                                                                                     \
  X(cuMemAddressFree, "cuMemAddressFree", CUdeviceptr, size_t)                                              \
  X(cuMemMap, "cuMemMap", CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)    \
  X(cuMemUnmap, "cuMemUnmap", CUdeviceptr, size_t)                                                          \
  X(cuMemSetAccess, "cuMemSetAccess", CUdeviceptr, size_t, const CUmemAccessDesc*, size_t)                  \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", CUmemGenericAllocationHandle*, void*)       \
  X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle", void*, CUmemGenericAllocationHandle, int, \
    unsigned long long)                                                                                     \
  X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", CUmemGenericAllocationHandle*, void*, \
    int)                                                                                                    \
  X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", void*, CUdeviceptr, size_t, int,        \
    unsigned long long)                                                                                     \
  X(cuMemPoolCreate, "cuMemPoolCreate", CUmemoryPool*, const CUmemPoolProps*)                               \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", CUmemoryPool)                                                     \
  X(cuMemPoolSetAccess, "cuMemPoolSetAccess", CUmemoryPool, const CUmemAccessDesc*, size_t)                 \
  X(cuMemPoolExportToShareableHandle, "cuMemPoolExportToShareableHandle", void*, CUmemoryPool, int,         \
    unsigned long long)                                                                                     \
  X(cuMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle", CUmemoryPool*, void*, int,    \
    unsigned long long)                                                                                     \
  X(cuMemPoolExportPointer, "cuMemPoolExportPointer", CUmemPoolPtrExportData*, CUdeviceptr)                 \
  X(cuMemPoolImportPointer, "cuMemPoolImportPointer", CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*)  \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", CUdeviceptr*, size_t, CUmemoryPool, CUstream)       \
  X(cuMemAllocManaged, "cuMemAllocManaged", CUdeviceptr*, size_t, unsigned)                                 \
  X(cuMemFreeAsync, "cuMemFreeAsync", CUdeviceptr, CUstream)                                                \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", CUstream*, unsigned, int)                     \
  X(cuStreamDestroy, "cuStreamDestroy_v2", CUstream)                                                        \
  X(cuStreamQuery, "cuStreamQuery", CUstream)                                                               \
  X(cuStreamSynchronize, "cuStreamSynchronize", CUstream)                                                   \
  X(cuStreamGetCtx, "cuStreamGetCtx", CUstream, CUcontext*)                                                 \
  X(cuLaunchHostFunc, "cuLaunchHostFunc", CUstream, CUhostFn, void*)                                        \
  X(cuEventCreate, "cuEventCreate", CUevent*, unsigned)                                                     \
  X(cuEventDestroy, "cuEventDestroy_v2", CUevent)                                                           \
  X(cuEventRecord, "cuEventRecord", CUevent, CUstream)                                                      \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", CUstream, CUevent, unsigned)                                    \
  X(cuStreamWriteValue64, "cuStreamWriteValue64_v2", CUstream, CUdeviceptr, uint64_t, unsigned)             \
  X(cuModuleLoadData, "cuModuleLoadData", CUmodule*, const void*)                                           \
  X(cuModuleUnload, "cuModuleUnload", CUmodule)                                                             \
  X(cuModuleGetFunction, "cuModuleGetFunction", CUfunction*, CUmodule, const char*)                         \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", int*,       \
    CUfunction, int, size_t)                                                                                \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", CUstream, int)                                         \
  X(cuStreamEndCapture, "cuStreamEndCapture", CUstream, CUgraph*)                                           \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", CUgraphExec*, CUgraph, unsigned long long)           \
  X(cuGraphLaunch, "cuGraphLaunch", CUgraphExec, CUstream)                                                  \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", CUgraphExec)                                                  \
  X(cuGraphDestroy, "cuGraphDestroy", CUgraph)                                                              \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", const CUlaunchConfig*, CUfunction, void**, void**)                \
  X(cuLaunchKernel, "cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,         \
    unsigned, unsigned, CUstream, void**, void**)

}  // namespace pw::cuda
