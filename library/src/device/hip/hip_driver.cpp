#include "device/hip/hip_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <type_traits>

#include "base/format.h"

namespace pw::settings {

const PathSetting hip_library{"hip_library", "",
                              "The HIP library. Empty: libamdhip64.so of the system or of /opt/rocm."};

}  // namespace pw::settings

namespace pw::hip {
namespace {

using namespace cuda;

struct Calls {
#define PW_HIP_MEMBER(name, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  PW_HIP_CALLS(PW_HIP_MEMBER)
#undef PW_HIP_MEMBER
  ExportDmaBuf export_dma_buf = nullptr;  ///< null: this ROCm has none
  // Of those in the driver's table, the ones that functions here call, too:
  CUresult (*get_ipc_handle)(CUipcMemHandle*, CUdeviceptr) = nullptr;
  CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            CUstream, void**, void**) = nullptr;

  bool operator==(const Calls&) const = default;
};
Calls calls;  // of the library that load_driver() loaded

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// A context of CUDA stands for a GPU; HIP knows GPUs by number alone.
CUcontext context_of(int ordinal) { return reinterpret_cast<CUcontext>(static_cast<intptr_t>(ordinal) + 1); }
int ordinal_of(CUcontext context) { return static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1; }

// The GPUs that were current in this thread before each push. It has no destructor: what a program destroys
// when it ends, after the thread's own objects, still enters GPUs.
constexpr int kMostPushes = 64;
struct Before {
  int ordinals[kMostPushes];
  int count;
};
thread_local Before before;

CUresult retain(CUcontext* context, CUdevice ordinal) {
  *context = context_of(ordinal);
  return hipSuccess;
}

CUresult get_current(CUcontext* context) {
  int ordinal = 0;
  const CUresult result = calls.hipGetDevice(&ordinal);
  *context = context_of(ordinal);
  return result;
}

CUresult push(CUcontext context) {
  if (before.count == kMostPushes) return hipErrorOutOfMemory;
  int& ordinal = before.ordinals[before.count];
  CUresult result = calls.hipGetDevice(&ordinal);
  if (result == hipSuccess) result = calls.hipSetDevice(ordinal_of(context));
  if (result == hipSuccess) ++before.count;
  return result;
}

CUresult pop(CUcontext* context) {
  if (before.count == 0) return hipErrorInvalidContext;
  get_current(context);
  return calls.hipSetDevice(before.ordinals[--before.count]);
}

CUresult enable_peer_access(CUcontext peer, unsigned flags) {
  return calls.hipDeviceEnablePeerAccess(ordinal_of(peer), flags);
}

CUresult stream_context(CUstream stream, CUcontext* context) {
  CUdevice ordinal = 0;
  const CUresult result = calls.hipStreamGetDevice(stream, &ordinal);
  *context = context_of(ordinal);
  return result;
}

int attribute(int which, int ordinal) {
  uint64_t value = 0;  // that of hipDeviceAttributeHdpMemFlushCntl has 8 bytes
  int low = 0;
  if (calls.hipDeviceGetAttribute(reinterpret_cast<int*>(&value), which, ordinal) != hipSuccess) return 0;
  std::memcpy(&low, &value, sizeof low);
  return low;
}

// Kernels of several processes run on an AMD GPU at the same time. HIP offers stream writes on all GPUs.
CUresult get_attribute(int* value, int which, CUdevice ordinal) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = attribute(hipDeviceAttributeMultiprocessorCount, ordinal);
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = attribute(hipDeviceAttributeMemoryClockRate, ordinal);
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = attribute(hipDeviceAttributeMemoryBusWidth, ordinal);
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = attribute(hipDeviceAttributeMaxPitch, ordinal);
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      *value = attribute(hipDeviceAttributeCanUseHostPointerForRegisteredMem, ordinal);
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
      *value = 1;
      return hipSuccess;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      *value = calls.export_dma_buf != nullptr ? 1 : 0;
      return hipSuccess;
    default:
      *value = 0;
      return hipSuccess;
  }
}

CUresult get_link(int* value, int, CUdevice from, CUdevice to) {
  uint32_t type = 0, hops = 0;
  const CUresult result = calls.hipExtGetLinkTypeAndHopCount(from, to, &type, &hops);
  *value = result == hipSuccess && type == kLinkXgmi ? 1 : 0;
  return result;
}

// GPUs without a number of their own all have the UUID "GPU-XX…", or zeros; their place on the bus tells them
// apart.
CUresult get_uuid(CUuuid* uuid, CUdevice ordinal) {
  const CUresult result = calls.hipDeviceGetUuid(uuid, ordinal);
  const std::string text(uuid->bytes, sizeof uuid->bytes);
  if (result == hipSuccess && text.find("XX") == std::string::npos && text != std::string(16, '\0'))
    return result;
  const std::string place = format("pci{:04x}{:02x}{:02x}", attribute(hipDeviceAttributePciDomainID, ordinal),
                                   attribute(hipDeviceAttributePciBusId, ordinal),
                                   attribute(hipDeviceAttributePciDeviceId, ordinal));
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  place.copy(uuid->bytes, sizeof uuid->bytes);
  return hipSuccess;
}

// The allocation around an address. HIP's own attribute for its size has 32 bits.
struct Range {
  void* start = nullptr;
  size_t bytes = 0;
};
Range range_at(void* address) {
  Range range;
  return calls.hipMemGetAddressRange(&range.start, &range.bytes, address) == hipSuccess ? range : Range{};
}

// HIP's function for one attribute of an address. What it does not know, it leaves or sets to a default.
uint64_t pointer_attribute(int which, void* address) {
  uint64_t value = 0;
  void* data = &value;
  return calls.hipDrvPointerGetAttributes(1, &which, &data, address) == hipSuccess ? value : 0;
}

// HIP cannot tell which memory has an IPC handle, so this tries.
bool has_ipc_handle(void* address) {
  CUipcMemHandle handle;
  const Range range = range_at(address);
  return range.start != nullptr &&
         calls.get_ipc_handle(&handle, reinterpret_cast<CUdeviceptr>(range.start)) == hipSuccess;
}

uint64_t memory_type(void* address) {
  switch (pointer_attribute(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, address)) {
    case hipMemoryTypeHost:
      return CU_MEMORYTYPE_HOST;
    case hipMemoryTypeDevice:
    case hipMemoryTypeManaged:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return 0;
  }
}

uint64_t pointer_fact(int which, void* address) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return pointer_attribute(HIP_POINTER_ATTRIBUTE_BUFFER_ID, address);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return memory_type(address);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return pointer_attribute(HIP_POINTER_ATTRIBUTE_IS_MANAGED, address) & 0xff;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return pointer_attribute(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) & 0xffffffff;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return memory_type(address) == CU_MEMORYTYPE_DEVICE && has_ipc_handle(address) ? 1 : 0;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return reinterpret_cast<uint64_t>(range_at(address).start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return range_at(address).bytes;
    default:
      return 0;
  }
}

// Each answer is written with the width that CUDA's callers here expect at most: 8 bytes (pointer.cpp).
CUresult get_pointer_attributes(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  const bool known = pointer_attribute(HIP_POINTER_ATTRIBUTE_BUFFER_ID, pointer(address)) != 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t value = known ? pointer_fact(attributes[i], pointer(address)) : 0;
    std::memcpy(data[i], &value, sizeof value);
  }
  return hipSuccess;
}

// Kernels of other GPUs and of this one see stores to fine-grained memory while they run; other memory is
// made coherent only between kernels.
CUresult allocate(CUdeviceptr* address, size_t bytes) {
  void* allocated = nullptr;
  const CUresult result = calls.hipExtMallocWithFlags(&allocated, bytes, kMallocFinegrained);
  *address = reinterpret_cast<CUdeviceptr>(allocated);
  return result;
}

CUresult fill(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream) {
  return calls.hipMemsetAsync(pointer(address), value, bytes, stream);
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return calls.hipMemcpy(pointer(to), pointer(from), bytes, hipMemcpyDefault);
}

CUresult copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return calls.hipMemcpyAsync(pointer(to), pointer(from), bytes, hipMemcpyDefault, stream);
}

CUresult copy_rows(const CUDA_MEMCPY2D* rows, CUstream stream) {
  CUDA_MEMCPY2D copied = *rows;
  copied.srcMemoryType = copied.dstMemoryType = hipMemoryTypeUnified;
  return calls.hipMemcpyParam2DAsync(&copied, stream);
}

CUresult copy_planes(const CUDA_MEMCPY3D* planes, CUstream stream) {
  HIP_MEMCPY3D copied{};
  copied.srcMemoryType = copied.dstMemoryType = hipMemoryTypeUnified;
  copied.srcDevice = pointer(planes->srcDevice);
  copied.srcPitch = planes->srcPitch;
  copied.srcHeight = planes->srcHeight;
  copied.dstDevice = pointer(planes->dstDevice);
  copied.dstPitch = planes->dstPitch;
  copied.dstHeight = planes->dstHeight;
  copied.WidthInBytes = planes->WidthInBytes;
  copied.Height = planes->Height;
  copied.Depth = planes->Depth;
  return calls.hipDrvMemcpy3DAsync(&copied, stream);
}

CUresult dma_buf(void* descriptor, CUdeviceptr address, size_t bytes, int, unsigned long long) {
  int exported = -1;
  uint64_t offset = 0;
  if (calls.export_dma_buf(pointer(address), bytes, &exported, &offset) != 0) return hipErrorNotSupported;
  if (offset != 0) {  // the memory shares a block with other memory, and callers expect its own
    close(exported);
    return hipErrorNotSupported;
  }
  std::memcpy(descriptor, &exported, sizeof exported);
  return hipSuccess;
}

// HIP knows no launch that begins while the previous work ends, which is all that the attributes ask for.
CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void** more) {
  return calls.launch_kernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                             config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                             config->hStream, parameters, more);
}

void translate(Driver& driver) {
  driver.cuLaunchKernelEx = launch;
  driver.cuDevicePrimaryCtxRetain = retain;
  driver.cuCtxGetCurrent = get_current;
  driver.cuCtxPushCurrent = push;
  driver.cuCtxPopCurrent = pop;
  driver.cuCtxEnablePeerAccess = enable_peer_access;
  driver.cuStreamGetCtx = stream_context;
  driver.cuDeviceGetAttribute = get_attribute;
  driver.cuDeviceGetP2PAttribute = get_link;
  driver.cuDeviceGetUuid = get_uuid;
  driver.cuPointerGetAttributes = get_pointer_attributes;
  driver.cuMemAlloc = allocate;
  driver.cuMemsetD8Async = fill;
  driver.cuMemcpy = copy;
  driver.cuMemcpyAsync = copy_async;
  driver.cuMemcpy2DAsync = copy_rows;
  driver.cuMemcpy3DAsync = copy_planes;
  driver.cuMemGetHandleForAddressRange = dma_buf;
}

Vendor amd() {
  Vendor vendor;
  vendor.kind = PW_HIP;
  vendor.device = "hip";
  vendor.api = "HIP";
  vendor.allocates = "hipMalloc";
  vendor.fast_link = "xgmi";
  vendor.why_no_gpu = "check rocminfo and HIP_VISIBLE_DEVICES";
  vendor.why_no_access =
      "no xGMI joins them and PCIe peer-to-peer is off (rocm-smi --showtopoaccess; large BAR, IOMMU and ACS "
      "settings)";
  vendor.why_no_dma_buf =
      "this ROCm has no dma-buf for GPU memory (HSA lacks hsa_amd_portable_export_dmabuf); update ROCm";
  vendor.why_no_hidden =
      "this process does not see that GPU; show all GPUs to each rank (no HIP_VISIBLE_DEVICES, no "
      "ROCR_VISIBLE_DEVICES), and choose one by the setting device (PEERWAY_DEVICE)";
  return vendor;
}

void* open(const std::string& library, std::string& name) {
  if (!library.empty()) return dlopen((name = library).c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* candidate : {"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"})
    if (void* handle = dlopen((name = candidate).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  return nullptr;
}

// Returns the first function that the library lacks, or an empty text.
std::string resolve(void* handle, Driver& driver) {
  std::string missing;
  Calls resolved;
  const auto get = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
#define PW_HIP_RESOLVE_SAME(member, symbol) get(driver.member, #symbol);
  PW_HIP_SAME(PW_HIP_RESOLVE_SAME)
#undef PW_HIP_RESOLVE_SAME
#define PW_HIP_RESOLVE_CALL(name, ...) get(resolved.name, #name);
  PW_HIP_CALLS(PW_HIP_RESOLVE_CALL)
#undef PW_HIP_RESOLVE_CALL
  // dlsym also looks into what a library was linked with, here HSA.
  resolved.export_dma_buf = reinterpret_cast<ExportDmaBuf>(dlsym(handle, "hsa_amd_portable_export_dmabuf"));
  resolved.get_ipc_handle = driver.cuIpcGetMemHandle;
  resolved.launch_kernel = driver.cuLaunchKernel;
  // A second load of the library stores nothing: other threads may be calling these functions.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (resolved != calls) calls = resolved;
  return missing;
}

}  // namespace

std::unique_ptr<const Driver> load_driver(const std::string& library, std::string& why) {
  auto driver = std::make_unique<Driver>();
  driver->vendor = amd();
  void* handle = open(library, driver->library);
  if (handle == nullptr) {
    why = library.empty()
              ? format("libamdhip64.so was not found: no ROCm on this node, or none in this container ({})",
                       dlerror())
              : format("{}, which the setting hip_library names, cannot be loaded ({})", library, dlerror());
    return nullptr;
  }
  const std::string missing = resolve(handle, *driver);
  // Checks the version first: it says more than the name of a missing function.
  if (driver->cuDriverGetVersion == nullptr || driver->cuDriverGetVersion(&driver->version) != hipSuccess) {
    why = format("{} does not tell its version (hipRuntimeGetVersion); is it HIP?", driver->library);
    return nullptr;
  }
  if (driver->version < kOldestHip) {
    why = format("{} is of ROCm {}; Peerway needs {} or newer: update ROCm", driver->library,
                 version_text(driver->version), version_text(kOldestHip));
    return nullptr;
  }
  if (!missing.empty()) {
    why = format("{} (ROCm {}) has no {}; reinstall ROCm", driver->library, version_text(driver->version),
                 missing);
    return nullptr;
  }
  if (const CUresult result = driver->cuInit(0); result != hipSuccess) {
    why = format(
        "HIP sees no GPU: hipInit gives {}; check rocminfo, /dev/kfd and its groups (render, video), and "
        "HIP_VISIBLE_DEVICES",
        driver->text(result));
    return nullptr;
  }
  translate(*driver);
  return driver;
}

std::string version_text(int version) {
  return format("{}.{}", version / 10000000, version % 10000000 / 100000);
}

GpuFacts facts_of(int ordinal) {
  GpuFacts facts;
  hipDeviceProp properties{};
  if (calls.hipGetDevicePropertiesR0600(&properties, ordinal) == hipSuccess)
    facts.arch.assign(properties.gcnArchName, strnlen(properties.gcnArchName, sizeof properties.gcnArchName));
  facts.large_bar = attribute(hipDeviceAttributeIsLargeBar, ordinal) != 0;
  facts.clock_khz = attribute(hipDeviceAttributeWallClockRate, ordinal);
  uint64_t flush = 0;  // HIP writes a pointer there
  if (calls.hipDeviceGetAttribute(reinterpret_cast<int*>(&flush), hipDeviceAttributeHdpMemFlushCntl,
                                  ordinal) == hipSuccess)
    facts.flush_word = reinterpret_cast<volatile uint32_t*>(flush);
  return facts;
}

}  // namespace pw::hip
