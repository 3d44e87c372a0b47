#include "device/cuda/share.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/status.h"
#include "device/cuda/pointer.h"
#include "device/cuda/segments.h"
#include "device/cuda/vmm.h"

namespace pw::cuda {
namespace {

// A mapping by the driver; it is undone in the context in which it was made.
class CudaMapping final : public Mapping {
 public:
  CudaMapping(const Driver& driver, CUcontext context, CUdeviceptr address, std::function<void()> undo)
      : driver_(driver), context_(context), undo_(std::move(undo)) {
    address_ = reinterpret_cast<std::byte*>(address);
  }
  ~CudaMapping() override {
    const Current current(driver_, context_);
    undo_();
  }

 private:
  const Driver& driver_;
  CUcontext context_;
  std::function<void()> undo_;
};

std::string whose(const Export& exported) {
  return format("{} bytes of process {}", exported.bytes, exported.process);
}

std::shared_ptr<Mapping> import_ipc(const Driver& driver, const Export& exported, CUcontext context) {
  CUipcMemHandle handle;
  static_assert(sizeof handle == sizeof exported.handle_bytes);
  std::memcpy(&handle, exported.handle_bytes.data(), sizeof handle);
  CUdeviceptr address = 0;
  driver.check(driver.cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
               format("opening the {} IPC handle of {}", driver.vendor.api, whose(exported)));
  return std::make_shared<CudaMapping>(driver, context, address,
                                       [&driver, address] { driver.cuIpcCloseMemHandle(address); });
}

std::vector<VmmPart> import_parts(const Driver& driver, const Export& exported) {
  if (exported.handle == kSegments) return import_segments(driver, exported);
  if (exported.handle == kFd) {
    const Descriptor own(descriptor_of(exported.process, exported.descriptor));
    return {{vmm_handle(driver, own.get(), exported), exported.bytes}};
  }
  CUmemGenericAllocationHandle handle = 0;
  auto bytes = exported.handle_bytes;
  driver.check(driver.cuMemImportFromShareableHandle(&handle, bytes.data(), CU_MEM_HANDLE_TYPE_FABRIC),
               "importing the fabric handle of " + whose(exported));
  return {{handle, exported.bytes}};
}

std::shared_ptr<Mapping> import_vmm(const Driver& driver, const Export& exported, int ordinal,
                                    CUcontext context) {
  std::vector<VmmPart> parts = import_parts(driver, exported);
  const CUdeviceptr address = vmm_map(driver, parts, ordinal);
  return std::make_shared<CudaMapping>(
      driver, context, address,
      [&driver, address, parts = std::move(parts)] { vmm_free(driver, address, parts); });
}

std::shared_ptr<Mapping> import_pool(const Driver& driver, const Export& exported, int ordinal,
                                     CUcontext context) {
  const Descriptor own(descriptor_of(exported.process, exported.descriptor));
  CUmemoryPool pool = nullptr;
  driver.check(driver.cuMemPoolImportFromShareableHandle(
                   &pool, reinterpret_cast<void*>(static_cast<intptr_t>(own.get())),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "importing the memory pool of " + whose(exported));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUmemPoolPtrExportData which;
  static_assert(sizeof which == sizeof exported.handle_bytes);
  std::memcpy(&which, exported.handle_bytes.data(), sizeof which);
  CUdeviceptr address = 0;
  CUresult result = driver.cuMemPoolSetAccess(pool, &access, 1);
  if (result == CUDA_SUCCESS) result = driver.cuMemPoolImportPointer(&address, pool, &which);
  if (result != CUDA_SUCCESS) {
    driver.cuMemPoolDestroy(pool);
    driver.check(result, "importing from a memory pool " + whose(exported));
  }
  return std::make_shared<CudaMapping>(driver, context, address, [&driver, address, pool] {
    driver.cuMemFree(address);
    driver.cuMemPoolDestroy(pool);
  });
}

// Writes a descriptor (an int) or a fabric handle to `shareable`.
void export_vmm(const Driver& driver, void* address, uint64_t bytes, int type, void* shareable,
                const char* how) {
  CUmemGenericAllocationHandle handle = 0;
  driver.check(driver.cuMemRetainAllocationHandle(&handle, address),
               "looking up the handle of an allocation");
  const CUresult result = driver.cuMemExportToShareableHandle(shareable, handle, type, 0);
  driver.cuMemRelease(handle);
  driver.check(result, format("exporting {} bytes by {}", bytes, how));
}

int export_pool(const Driver& driver, const Allocation& allocation, Export& exported) {
  const auto address = reinterpret_cast<CUdeviceptr>(allocation.base);
  const auto pool = reinterpret_cast<CUmemoryPool>(describe_pointer(driver, address).pool);
  // The pool comes first: the driver exports memory only of a pool that was exported already.
  int shared = -1;
  driver.check(
      driver.cuMemPoolExportToShareableHandle(&shared, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "exporting a memory pool by descriptor");
  Descriptor descriptor(shared);
  CUmemPoolPtrExportData which{};
  driver.check(driver.cuMemPoolExportPointer(&which, address),
               format("exporting the {} bytes at {:#x} of memory pool {:#x}", allocation.bytes, address,
                      reinterpret_cast<uint64_t>(pool)));
  std::memcpy(exported.handle_bytes.data(), &which, sizeof which);
  return descriptor.release();
}

}  // namespace

void export_handle(const Driver& driver, const Allocation& allocation, Export& exported) {
  if (allocation.handle == kIpc) {
    CUipcMemHandle handle;
    driver.check(driver.cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(allocation.base)),
                 format("making a {} IPC handle for {} bytes", driver.vendor.api, allocation.bytes));
    std::memcpy(exported.handle_bytes.data(), &handle, sizeof handle);
  } else if (allocation.handle == kFd) {
    allow_attachment();
    exported.descriptor =
        vmm_descriptor(driver, reinterpret_cast<uint64_t>(allocation.base), allocation.bytes);
  } else if (allocation.handle == kSegments) {
    allow_attachment();
    exported.descriptor = export_segments(driver, allocation);
  } else if (allocation.handle == kPool) {
    allow_attachment();
    exported.descriptor = export_pool(driver, allocation, exported);
  } else if (allocation.handle == kFabric) {
    export_vmm(driver, allocation.base, allocation.bytes, CU_MEM_HANDLE_TYPE_FABRIC,
               exported.handle_bytes.data(), "fabric handle (is nvidia-imex running?)");
  }  // the key tells peers why
}

void forget_handle(const Export& exported) noexcept {
  if (exported.descriptor < 0) return;
  if (exported.handle == kSegments)
    close_segments(exported.descriptor);
  else
    close(exported.descriptor);
}

int vmm_descriptor(const Driver& driver, uint64_t address, uint64_t bytes) {
  int descriptor = -1;
  export_vmm(driver, reinterpret_cast<void*>(address), bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
             &descriptor, "descriptor (if the process has too many open files, raise ulimit -n)");
  return descriptor;
}

CUmemGenericAllocationHandle vmm_handle(const Driver& driver, int descriptor, const Export& exported) {
  CUmemGenericAllocationHandle handle = 0;
  driver.check(driver.cuMemImportFromShareableHandle(
                   &handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "importing the descriptor of " + whose(exported));
  return handle;
}

std::shared_ptr<Mapping> import_handle(const Driver& driver, const Export& exported, int ordinal,
                                       CUcontext context) {
  if (exported.handle == kIpc) return import_ipc(driver, exported, context);
  if (exported.handle == kFd || exported.handle == kFabric || exported.handle == kSegments)
    return import_vmm(driver, exported, ordinal, context);
  if (exported.handle == kPool) return import_pool(driver, exported, ordinal, context);
  throw Error(PW_UNSUPPORTED, format("{} cannot map {}: its owner could not export it as {} memory",
                                     driver.device_name(ordinal), whose(exported), driver.vendor.api));
}

std::shared_ptr<Mapping> own_memory(const Driver& driver, const Export& exported, int ordinal, int owner) {
  if (ordinal != owner) {
    const PointerFacts facts = describe_pointer(driver, exported.address);
    if (facts.is_vmm()) {
      vmm_allow(driver, exported.address - exported.offset, exported.bytes, ordinal);
    } else if (facts.pool != 0) {
      CUmemAccessDesc access{};
      access.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      driver.check(driver.cuMemPoolSetAccess(reinterpret_cast<CUmemoryPool>(facts.pool), &access, 1),
                   format("letting {} reach a memory pool of {}", driver.device_name(ordinal),
                          driver.device_name(owner)));
    } else if (facts.managed == 0) {
      CUcontext peer = nullptr;
      driver.check(driver.cuDevicePrimaryCtxRetain(&peer, owner),
                   format("opening {}", driver.device_name(owner)));
      const CUresult result = driver.cuCtxEnablePeerAccess(peer, 0);
      if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        driver.check(
            result, format("giving {} access to {}", driver.device_name(ordinal), driver.device_name(owner)));
    }
  }
  return std::make_shared<OwnMemory>(exported);
}

int descriptor_of(int process, int descriptor) {
  // A CUDA descriptor is not a file, so it cannot be opened through /proc; pidfd_getfd copies it.
  const Descriptor other(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!other)
    throw Error(errno == ESRCH ? PW_PEER_LOST : PW_SYSTEM,
                format("cannot open process {}{}", process, errno_text(errno)));
  const int own = static_cast<int>(syscall(SYS_pidfd_getfd, other.get(), descriptor, 0));
  if (own >= 0) return own;
  const int error = errno;
  if (error == EBADF)
    throw Error(PW_STALE_KEY, format("process {} has closed descriptor {}, by which it showed its memory",
                                     process, descriptor));
  throw Error(
      error == EPERM ? PW_DENIED : PW_SYSTEM,
      format(
          "cannot copy descriptor {} of process {}{}. Both processes must belong to one user, "
          "/proc/sys/kernel/yama/ptrace_scope must be 0 or 1, and a container needs a seccomp profile that "
          "allows pidfd_getfd",
          descriptor, process, errno_text(error)));
}

}  // namespace pw::cuda
