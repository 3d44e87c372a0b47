// A test double of HIP: a libamdhip64.so over a driver of CUDA. Over the fake driver (fake_cuda.cpp) it needs
// no GPU; over NVIDIA's driver the whole HIP device runs on an NVIDIA GPU. It has HIP's numbers, layouts and
// habits (a current GPU for each thread, answers about addresses that are 32 bits wide or missing), as HIP's
// documentation and source describe them; library/tests/python/test_hip_abi.py compares the numbers and
// layouts with HIP's headers. FAKE_HIP_OVER names the driver's library; by default it is fake_cuda.so beside
// this one.
#include "fake_hip.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "device/hip/hip_abi.h"

using namespace pw::hip;
using namespace pw::cuda;

#define API extern "C" __attribute__((visibility("default")))

namespace {

struct Below {
#define MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  PW_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
  bool fake = false;

  Below() {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&ordinal_of), &own);
    const std::string file = own.dli_fname;
    const std::string name = file.substr(file.rfind('/') + 1);  // libfake_hip.so or fake_hip.so
    const char* named = std::getenv("FAKE_HIP_OVER");
    const std::string library =
        named != nullptr
            ? named
            : file.substr(0, file.rfind('/') + 1) + (name.starts_with("lib") ? "lib" : "") + "fake_cuda.so";
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
#define RESOLVE(name, symbol, ...) name = reinterpret_cast<decltype(name)>(dlsym(handle, symbol));
    PW_CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
    fake = dlsym(handle, "fake_cuda_reset") != nullptr;
  }
  static void ordinal_of() {}  // an address in this library
};

const Below& cuda_driver() {
  static const Below below;
  return below;
}

struct World {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> ids;  // of HIP, by those of CUDA
  int version = 60342134;
  bool large_bar = true;
  bool numbered = true;
  uint32_t flush_word = 0;
};
World world;
thread_local int current = 0;

CUcontext context_of(int ordinal) {
  CUcontext context = nullptr;
  cuda_driver().cuDevicePrimaryCtxRetain(&context, ordinal);
  return context;
}

// Makes the thread's current GPU current for CUDA.
class Entered {
 public:
  Entered() { cuda_driver().cuCtxPushCurrent(context_of(current)); }
  ~Entered() {
    CUcontext popped = nullptr;
    cuda_driver().cuCtxPopCurrent(&popped);
  }
  Entered(const Entered&) = delete;
};

CUdeviceptr number(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

uint64_t fact(int attribute, const void* address) {
  uint64_t value = 0;
  void* data = &value;
  return cuda_driver().cuPointerGetAttributes(1, &attribute, &data, number(address)) == CUDA_SUCCESS ? value
                                                                                                     : 0;
}

// A number of 32 bits for each allocation; 0 for what CUDA does not know.
uint32_t id_at(const void* address) {
  const std::pair both{fact(CU_POINTER_ATTRIBUTE_BUFFER_ID, address),
                       fact(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, address)};
  if (both.first == 0 && both.second == 0) return 0;
  const std::lock_guard lock(world.mutex);
  return world.ids.emplace(both, static_cast<uint32_t>(world.ids.size() + 1)).first->second;
}

template <typename Value>
void answer(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
}

// As HIP answers: what it does not support it leaves alone.
void answer_attribute(int attribute, void* data, const void* address) {
  const uint32_t id = id_at(address);
  switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
      return answer(data, id);
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer(data, static_cast<uint32_t>(fact(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)));
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
      return answer(data, fact(CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != 0);
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer(data,
                    id == 0 ? -2 : static_cast<int>(fact(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)));
    default:
      return;
  }
}

int attribute_below(int attribute, int ordinal) {
  int value = 0;
  cuda_driver().cuDeviceGetAttribute(&value, attribute, ordinal);
  return value;
}

}  // namespace

API void fake_hip_set_version(int version) { world.version = version; }
API void fake_hip_set_large_bar(int large) { world.large_bar = large != 0; }
API void fake_hip_set_numbered(int numbered) { world.numbered = numbered != 0; }
API uint32_t* fake_hip_flush_word() { return &world.flush_word; }

API CUresult hipInit(unsigned flags) {
  return cuda_driver().cuInit == nullptr ? hipErrorNoDevice : cuda_driver().cuInit(flags);
}
API CUresult hipRuntimeGetVersion(int* version) {
  *version = world.version;
  return hipSuccess;
}
API CUresult hipDrvGetErrorName(CUresult error, const char** text) {
  static thread_local std::string name;
  name = "hipError" + std::to_string(error);
  *text = name.c_str();
  return hipSuccess;
}
API CUresult hipDrvGetErrorString(CUresult, const char** text) {
  *text = "an error of the fake HIP";
  return hipSuccess;
}
API CUresult hipGetDeviceCount(int* count) { return cuda_driver().cuDeviceGetCount(count); }
API CUresult hipDeviceGet(CUdevice* device, int ordinal) {
  return cuda_driver().cuDeviceGet(device, ordinal);
}
API CUresult hipDeviceGetName(char* name, int bytes, CUdevice device) {
  return cuda_driver().cuDeviceGetName(name, bytes, device);
}
API CUresult hipGetDevice(int* ordinal) {
  *ordinal = current;
  return hipSuccess;
}
API CUresult hipSetDevice(int ordinal) {
  int count = 0;
  cuda_driver().cuDeviceGetCount(&count);
  if (ordinal < 0 || ordinal >= count) return hipErrorInvalidValue;
  current = ordinal;
  return hipSuccess;
}
// 16 characters, as HIP gives them: the GPU's number in hexadecimal digits.
API CUresult hipDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  CUuuid whole{};
  const CUresult result = cuda_driver().cuDeviceGetUuid(&whole, device);
  static constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(whole.bytes[8 + i / 2]);
    uuid->bytes[i] = kDigits[i % 2 == 0 ? byte >> 4 : byte & 15];
  }
  if (!world.numbered) std::memcpy(uuid->bytes, "GPU-XX\0\0\0\0\0\0\0\0\0", 16);
  return result;
}
API CUresult hipDeviceGetAttribute(int* value, int attribute, int ordinal) {
  switch (attribute) {
    case hipDeviceAttributeMultiprocessorCount:
      *value = attribute_below(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
      return hipSuccess;
    case hipDeviceAttributeMaxPitch:
      *value = attribute_below(CU_DEVICE_ATTRIBUTE_MAX_PITCH, ordinal);
      return hipSuccess;
    case hipDeviceAttributeCanUseHostPointerForRegisteredMem:
      *value = attribute_below(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, ordinal);
      return hipSuccess;
    case hipDeviceAttributePciBusId:
      *value = 0x40 + ordinal;
      return hipSuccess;
    case hipDeviceAttributePciDeviceId:
    case hipDeviceAttributePciDomainID:
      *value = 0;
      return hipSuccess;
    case hipDeviceAttributeIsLargeBar:  // the CPU reaches the memory of the fake GPU, but not of a real one
      *value = world.large_bar && cuda_driver().fake ? 1 : 0;
      return hipSuccess;
    case hipDeviceAttributeWallClockRate:
      *value = 100000;
      return hipSuccess;
    case hipDeviceAttributeHdpMemFlushCntl:
      answer(value, &world.flush_word);
      return hipSuccess;
    default:
      return hipErrorInvalidValue;
  }
}
API CUresult hipGetDevicePropertiesR0600(hipDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->gcnArchName, "gfx90a:sramecc+:xnack-");
  return hipSuccess;
}
API CUresult hipDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
  return cuda_driver().cuDeviceCanAccessPeer(can, from, to);
}
API CUresult hipExtGetLinkTypeAndHopCount(int from, int to, uint32_t* type, uint32_t* hops) {
  constexpr uint32_t kPcie = 2;
  int atomics = 0;
  *hops = 1;
  const CUresult result = cuda_driver().cuDeviceGetP2PAttribute(
      &atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to);
  *type = atomics != 0 ? kLinkXgmi : kPcie;
  return result;
}
API CUresult hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  const Entered entered;
  return cuda_driver().cuCtxEnablePeerAccess(context_of(peer), flags);
}
API CUresult hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Entered entered;
  return cuda_driver().cuCtxGetStreamPriorityRange(least, greatest);
}

API CUresult hipDrvPointerGetAttributes(unsigned count, int* attributes, void** data, void* address) {
  if (count == 0 || attributes == nullptr || data == nullptr || address == nullptr)
    return hipErrorInvalidValue;
  for (unsigned i = 0; i < count; ++i) answer_attribute(attributes[i], data[i], address);
  return hipSuccess;  // whatever the address
}
API CUresult hipMemGetAddressRange(void** start, size_t* bytes, void* address) {
  if (id_at(address) == 0) return hipErrorNotFound;
  *start = reinterpret_cast<void*>(fact(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
  *bytes = fact(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
  return hipSuccess;
}

API CUresult hipExtMallocWithFlags(void** address, size_t bytes, unsigned flags) {
  if (flags != 0 && flags != kMallocFinegrained) return hipErrorInvalidValue;
  const Entered entered;
  CUdeviceptr allocated = 0;
  const CUresult result = cuda_driver().cuMemAlloc(&allocated, bytes);
  *address = reinterpret_cast<void*>(allocated);
  return result;
}
API CUresult hipMallocManaged(void** address, size_t bytes, unsigned flags) {
  const Entered entered;
  CUdeviceptr allocated = 0;
  const CUresult result = cuda_driver().cuMemAllocManaged(&allocated, bytes, flags);
  *address = reinterpret_cast<void*>(allocated);
  return result;
}
API CUresult hipFree(void* address) {
  const Entered entered;
  return address == nullptr ? hipSuccess : cuda_driver().cuMemFree(number(address));
}
API CUresult hipMemsetAsync(void* address, int value, size_t bytes, CUstream stream) {
  const Entered entered;
  return cuda_driver().cuMemsetD8Async(number(address), static_cast<unsigned char>(value), bytes, stream);
}
API CUresult hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  const Entered entered;
  return kind == hipMemcpyDefault ? cuda_driver().cuMemcpy(number(to), number(from), bytes)
                                  : hipErrorInvalidValue;
}
API CUresult hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, CUstream stream) {
  const Entered entered;
  return kind == hipMemcpyDefault ? cuda_driver().cuMemcpyAsync(number(to), number(from), bytes, stream)
                                  : hipErrorInvalidValue;
}
API CUresult hipMemcpyParam2DAsync(const CUDA_MEMCPY2D* rows, CUstream stream) {
  if (rows->srcMemoryType != hipMemoryTypeUnified || rows->dstMemoryType != hipMemoryTypeUnified)
    return hipErrorInvalidValue;
  const Entered entered;
  CUDA_MEMCPY2D below = *rows;
  below.srcMemoryType = below.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  return cuda_driver().cuMemcpy2DAsync(&below, stream);
}
API CUresult hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* planes, CUstream stream) {
  if (planes->srcMemoryType != hipMemoryTypeUnified || planes->dstMemoryType != hipMemoryTypeUnified)
    return hipErrorInvalidValue;
  const Entered entered;
  CUDA_MEMCPY3D below{};
  below.srcMemoryType = below.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  below.srcDevice = number(planes->srcDevice);
  below.srcPitch = planes->srcPitch;
  below.srcHeight = planes->srcHeight;
  below.dstDevice = number(planes->dstDevice);
  below.dstPitch = planes->dstPitch;
  below.dstHeight = planes->dstHeight;
  below.WidthInBytes = planes->WidthInBytes;
  below.Height = planes->Height;
  below.Depth = planes->Depth;
  return cuda_driver().cuMemcpy3DAsync(&below, stream);
}

API CUresult hipHostRegister(void* address, size_t bytes, unsigned flags) {
  const Entered entered;
  return cuda_driver().cuMemHostRegister(address, bytes, flags);
}
API CUresult hipHostUnregister(void* address) {
  const Entered entered;
  return cuda_driver().cuMemHostUnregister(address);
}
API CUresult hipHostGetDevicePointer(void** seen, void* address, unsigned flags) {
  const Entered entered;
  CUdeviceptr below = 0;
  const CUresult result = cuda_driver().cuMemHostGetDevicePointer(&below, address, flags);
  *seen = reinterpret_cast<void*>(below);
  return result;
}

API CUresult hipIpcGetMemHandle(CUipcMemHandle* handle, void* address) {
  const Entered entered;
  return cuda_driver().cuIpcGetMemHandle(handle, number(address));
}
API CUresult hipIpcOpenMemHandle(void** address, CUipcMemHandle handle, unsigned flags) {
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return hipErrorInvalidValue;
  const Entered entered;
  CUdeviceptr below = 0;
  const CUresult result =
      cuda_driver().cuIpcOpenMemHandle(&below, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  *address = reinterpret_cast<void*>(below);
  return result;
}
API CUresult hipIpcCloseMemHandle(void* address) {
  const Entered entered;
  return cuda_driver().cuIpcCloseMemHandle(number(address));
}
API int hsa_amd_portable_export_dmabuf(const void* address, size_t bytes, int* descriptor, uint64_t* offset) {
  const Entered entered;
  *offset = 0;
  return cuda_driver().cuMemGetHandleForAddressRange(descriptor, number(address), bytes,
                                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

API CUresult hipStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  const Entered entered;
  return cuda_driver().cuStreamCreateWithPriority(stream, flags, priority);
}
API CUresult hipStreamDestroy(CUstream stream) { return cuda_driver().cuStreamDestroy(stream); }
API CUresult hipStreamQuery(CUstream stream) {
  const Entered entered;
  return cuda_driver().cuStreamQuery(stream);
}
API CUresult hipStreamSynchronize(CUstream stream) {
  const Entered entered;
  return cuda_driver().cuStreamSynchronize(stream);
}
API CUresult hipStreamGetDevice(CUstream stream, CUdevice* device) {
  const Entered entered;
  CUcontext context = nullptr;
  int count = 0;
  if (const CUresult result = cuda_driver().cuStreamGetCtx(stream, &context); result != CUDA_SUCCESS)
    return result;
  cuda_driver().cuDeviceGetCount(&count);
  for (*device = 0; *device < count; ++*device)
    if (context_of(*device) == context) return hipSuccess;
  return hipErrorInvalidContext;
}
API CUresult hipLaunchHostFunc(CUstream stream, CUhostFn call, void* user) {
  const Entered entered;
  return cuda_driver().cuLaunchHostFunc(stream, call, user);
}
API CUresult hipEventCreateWithFlags(CUevent* event, unsigned flags) {
  const Entered entered;
  return cuda_driver().cuEventCreate(event, flags);
}
API CUresult hipEventDestroy(CUevent event) { return cuda_driver().cuEventDestroy(event); }
API CUresult hipEventRecord(CUevent event, CUstream stream) {
  const Entered entered;
  return cuda_driver().cuEventRecord(event, stream);
}
API CUresult hipStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  const Entered entered;
  return cuda_driver().cuStreamWaitEvent(stream, event, flags);
}
API CUresult hipStreamWriteValue64(CUstream stream, void* address, uint64_t value, unsigned flags) {
  const Entered entered;
  return cuda_driver().cuStreamWriteValue64(stream, number(address), value, flags);
}

API CUresult hipModuleLoadData(CUmodule* module, const void* image) {
  const Entered entered;
  return cuda_driver().cuModuleLoadData(module, image);
}
API CUresult hipModuleUnload(CUmodule module) {
  const Entered entered;
  return cuda_driver().cuModuleUnload(module);
}
API CUresult hipModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return cuda_driver().cuModuleGetFunction(function, module, name);
}
API CUresult hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                                size_t shared) {
  return cuda_driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
API CUresult hipModuleLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                                   unsigned threads_x, unsigned threads_y, unsigned threads_z,
                                   unsigned shared, CUstream stream, void** parameters, void** more) {
  const Entered entered;
  return cuda_driver().cuLaunchKernel(function, x, y, z, threads_x, threads_y, threads_z, shared, stream,
                                      parameters, more);
}

API CUresult hipStreamBeginCapture(CUstream stream, int mode) {
  const Entered entered;
  return cuda_driver().cuStreamBeginCapture(stream, mode);
}
API CUresult hipStreamEndCapture(CUstream stream, CUgraph* graph) {
  return cuda_driver().cuStreamEndCapture(stream, graph);
}
API CUresult hipGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph graph, unsigned long long flags) {
  const Entered entered;
  return cuda_driver().cuGraphInstantiate(instance, graph, flags);
}
API CUresult hipGraphLaunch(CUgraphExec graph, CUstream stream) {
  const Entered entered;
  return cuda_driver().cuGraphLaunch(graph, stream);
}
API CUresult hipGraphExecDestroy(CUgraphExec graph) { return cuda_driver().cuGraphExecDestroy(graph); }
API CUresult hipGraphDestroy(CUgraph graph) { return cuda_driver().cuGraphDestroy(graph); }
