#include "device/cuda/cuda_device.h"

#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "base/setting.h"
#include "base/status.h"
#include "device/cuda/pointer.h"
#include "device/cuda/share.h"

namespace pw::settings {

const PathSetting gdrcopy_library{"gdrcopy_library", "",
                                  "The GDRCopy library. Empty: libgdrapi.so.2 of the system."};

}  // namespace pw::settings

namespace pw::cuda {
namespace {

bool is_host(const Export& exported) { return exported.device_uuid == std::array<std::byte, 16>{}; }

CUdeviceptr pointer_to(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

CudaDevice::CudaDevice(const Driver& driver, int ordinal, Pins& pins, MakeImage make_image)
    : driver_(driver),
      gpu_{driver, ordinal},
      pins_(pins),
      make_image_(std::move(make_image)),
      peers_(driver, ordinal) {
  char name[256] = {};
  driver.check(driver.cuDeviceGetName(name, sizeof name - 1, ordinal),
               format("asking for the name of {}", driver.device_name(ordinal)));
  name_ = name;
  gpu_.sms = static_cast<unsigned>(std::max(1, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  gpu_.max_pitch = static_cast<uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
  gpu_.writes_words = attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
  gpu_.same_host_address = attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0;
  vmm_ = vmm_kind(driver, ordinal);
}

CudaDevice::~CudaDevice() = default;

int CudaDevice::attribute(int which) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, which, gpu_.ordinal) == CUDA_SUCCESS ? value : 0;
}

double CudaDevice::memory_bytes_per_us() const {
  constexpr double kTransfersPerClock = 2, kBitsPerByte = 8;
  const double clocks_per_us = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e3;  // it is in kHz
  return kTransfersPerClock * clocks_per_us * attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) /
         kBitsPerByte;
}

CUcontext CudaDevice::context() {
  if (CUcontext open = context_.load(std::memory_order_acquire)) return open;
  std::lock_guard lock(mutex_);
  if (CUcontext open = context_.load(std::memory_order_relaxed)) return open;
  CUcontext opened = nullptr;
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&opened, gpu_.ordinal),
                format("opening {} ({})", to_string(id()), name_));
  context_.store(opened, std::memory_order_release);
  return opened;
}

// The context stays current: popping it after each transfer would cost more than it is worth, and a thread
// without a context of its own does not miss the old state.
void CudaDevice::enter() {
  CUcontext now = nullptr;
  if (driver_.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now != nullptr) return;
  driver_.check(driver_.cuCtxPushCurrent(context()), format("entering {} ({})", to_string(id()), name_));
}

std::optional<Allocation> CudaDevice::find(const void* address, uint64_t bytes) {
  const uint64_t number = pointer_to(address);
  auto allocation = allocation_of(describe_range(driver_, number, bytes), number, bytes, id());
  if (allocation && allocation->handle == kIpc && !why_no_ipc(*allocation).empty()) {
    allocation->handle = Handle::none;
    allocation->why_none = why_no_ipc_;
  }
  return allocation;
}

const std::string& CudaDevice::why_no_ipc(const Allocation& allocation) {
  const Current current(driver_, context());
  std::lock_guard lock(mutex_);
  if (asked_ipc_) return why_no_ipc_;
  asked_ipc_ = true;
  CUipcMemHandle handle;
  const CUresult result = driver_.cuIpcGetMemHandle(&handle, pointer_to(allocation.base));
  if (result != CUDA_SUCCESS)
    why_no_ipc_ = format(
        "{} memory cannot be shown to other processes here: {} IPC gives {}; use Peerway's own allocation",
        driver_.vendor.allocates, driver_.vendor.api, driver_.text(result));
  return why_no_ipc_;
}

uint64_t CudaDevice::allocation_id(const void* address) {
  return allocation_id_at(driver_, pointer_to(address));
}

// CUDA IPC shares memory faster than VMM does: on H200 export and release of 64 MiB take 0.2 ms instead of
// 2.9. A copy engine is also slower with VMM memory of a GPU that is hidden from its process. Only VMM memory
// can have a fabric handle.
Allocation CudaDevice::allocate(uint64_t bytes) {
  const Current current(driver_, context());
  const uint64_t wanted = std::max<uint64_t>(bytes, 1);
  if (vmm_.supported && vmm_.fabric) return allocate_by_vmm(wanted);
  CUdeviceptr address = 0;
  driver_.check(driver_.cuMemAlloc(&address, wanted),
                format("allocating {} bytes on {}", wanted, to_string(id())));
  Allocation allocation = recognised(address, wanted);
  if (allocation.handle == kIpc || !vmm_.supported) return allocation;
  driver_.cuMemFree(address);  // CUDA IPC does not work here
  return allocate_by_vmm(wanted);
}

Allocation CudaDevice::allocate_by_vmm(uint64_t bytes) {
  CUdeviceptr address = 0;
  {
    std::lock_guard lock(mutex_);
    address = vmm_allocate(driver_, vmm_, bytes);
  }
  return recognised(address, bytes);
}

Allocation CudaDevice::recognised(CUdeviceptr address, uint64_t bytes) {
  if (auto allocation = find(reinterpret_cast<void*>(address), bytes)) return *allocation;
  throw Error(PW_INTERNAL, format("{} does not recognise the {} bytes that it just allocated at {:#x}",
                                  driver_.vendor.api, bytes, address));
}

void CudaDevice::release(const Allocation& allocation) noexcept {
  const Current current(driver_, context_.load());
  if (describe_pointer(driver_, pointer_to(allocation.base)).is_vmm())
    vmm_free(driver_, pointer_to(allocation.base), allocation.bytes);
  else
    driver_.cuMemFree(pointer_to(allocation.base));
}

Export CudaDevice::export_allocation(const Allocation& allocation, const void* address) {
  const Current current(driver_, context());
  Export exported = describe(allocation, address);
  exported.device_uuid = uuid();
  export_handle(driver_, allocation, exported);
  return exported;
}

void CudaDevice::forget(const Export& exported) noexcept { forget_handle(exported); }

std::shared_ptr<Mapping> CudaDevice::import(const Export& exported) {
  CUcontext const opened = context();
  const Current current(driver_, opened);
  if (exported.process == getpid()) {
    const int owner = is_host(exported) ? gpu_.ordinal : peers_.to(exported.device_uuid).ordinal;
    return own_memory(driver_, exported, gpu_.ordinal, owner);
  }
  MappingKey key{exported.process, exported.allocation, exported.bytes, {}};
  if (exported.handle == kIpc) std::get<3>(key) = exported.handle_bytes;
  std::lock_guard lock(mutex_);
  auto& entry = mappings_[key];
  if (auto mapping = entry.lock()) return mapping;
  auto mapping = import_handle(driver_, exported, gpu_.ordinal, opened);
  entry = mapping;
  std::erase_if(mappings_, [](const auto& other) { return other.second.expired(); });
  return mapping;
}

std::unique_ptr<Queue> CudaDevice::make_queue() {
  return std::make_unique<CudaQueue>(gpu_, context(), pins_,
                                     [this](std::string& why_not) { return kernels(why_not); });
}

const Kernels* CudaDevice::kernels(std::string& why_not) {
  if (const Kernels* loaded = kernels_.load(std::memory_order_acquire)) return loaded;
  CUcontext opened = nullptr;
  try {
    opened = context();
  } catch (const Error& error) {  // a later call may find the GPU free
    why_not = error.what();
    return nullptr;
  }
  const Current current(driver_, opened);
  std::lock_guard lock(mutex_);
  if (own_kernels_ == nullptr && why_no_kernels_.empty()) try {
      const int capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
      own_kernels_ = std::make_unique<Kernels>(driver_, capability, make_image_);
      kernels_.store(own_kernels_.get(), std::memory_order_release);
    } catch (const Error& error) {
      why_no_kernels_ = error.what();
    }
  why_not = why_no_kernels_;
  return own_kernels_.get();
}

bool CudaDevice::has_kernels(std::string& why_not) { return kernels(why_not) != nullptr; }

int CudaDevice::dma_buf(const Allocation& allocation) {
  if (attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0)
    throw Error(PW_UNAVAILABLE, std::string(driver_.vendor.why_no_dma_buf));
  const Current current(driver_, context());
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const CUdeviceptr first = pointer_to(allocation.base);
  const CUdeviceptr start = first / page * page;
  const uint64_t bytes = (first + allocation.bytes - start + page - 1) / page * page;
  int descriptor = -1;
  driver_.check(driver_.cuMemGetHandleForAddressRange(&descriptor, start, bytes,
                                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                format("asking for a dma-buf of {} bytes of {}", bytes, to_string(id())));
  return descriptor;
}

std::unique_ptr<CpuMapping> CudaDevice::map_for_cpu(const Allocation& allocation) {
  std::lock_guard lock(mutex_);
  if (mappers_.empty()) {
    if (auto gdrcopy = make_gdrcopy_mapper(settings::gdrcopy_library.text(), why_no_gdrcopy_))
      mappers_.push_back(std::move(gdrcopy));
    mappers_.push_back(make_dmabuf_mapper());
  }
  return cuda::map_for_cpu(mappers_, why_no_gdrcopy_, *this, allocation);
}

void CudaDevice::pin(void* address, uint64_t bytes) {
  const Current current(driver_, context());
  pins_.pin(address, bytes);
}

void CudaDevice::unpin(void* address) noexcept {
  const Current current(driver_, context_.load());
  pins_.unpin(address);
}

void* CudaDevice::as_seen(void* address) { return reinterpret_cast<void*>(address_on(gpu_, pins_, address)); }

bool CudaDevice::reaches(const Export& exported, std::string& why_not) const {
  const bool own = exported.process == getpid();
  if (is_host(exported)) {
    if (own || exported.handle == Handle::memfd) return true;
    why_not = "a GPU reaches host memory of another process only where it came from pw_region_allocate";
    return false;
  }
  if (!own && exported.handle == Handle::none) {
    why_not = "the owner could not export its memory";
    return false;
  }
  const PeerAccess& access = peers_.to(exported.device_uuid);
  why_not = access.why_not;
  return access.reachable;
}

std::string CudaDevice::link(const Export& exported) const {
  if (is_host(exported)) return {};
  const PeerAccess& access = peers_.to(exported.device_uuid);
  if (access.ordinal != gpu_.ordinal) return access.link;
  const bool at_once = exported.process == getpid() || attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED) != 0;
  return at_once ? "same" : "time-sliced";
}

bool CudaDevice::carries_lines(const Export& exported) const { return link(exported) == "nvlink"; }

}  // namespace pw::cuda
