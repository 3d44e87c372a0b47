#include "device/cuda/vmm.h"

#include <array>

#include "base/format.h"
#include "base/status.h"

namespace pw::cuda {
namespace {

CUmemAllocationProp properties(const VmmKind& kind) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, kind.ordinal};
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
                                (kind.fabric ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_NONE);
  wanted.allocFlags.gpuDirectRDMACapable = kind.rdma ? 1 : 0;
  return wanted;
}

CUresult create(const Driver& driver, const VmmKind& kind, uint64_t& bytes,
                CUmemGenericAllocationHandle& handle) {
  const CUmemAllocationProp wanted = properties(kind);
  size_t granularity = 0;
  const CUresult result =
      driver.cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t rounded = (bytes + granularity - 1) / granularity * granularity;
  if (rounded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult created = driver.cuMemCreate(&handle, rounded, &wanted, 0);
  if (created == CUDA_SUCCESS) bytes = rounded;
  return created;
}

bool attribute(const Driver& driver, int which, int ordinal) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, ordinal) == CUDA_SUCCESS && value != 0;
}

// The driver unmaps no more than one part at once. Returns how many bytes they had together.
uint64_t unmap(const Driver& driver, CUdeviceptr address, std::span<const VmmPart> parts) {
  uint64_t offset = 0;
  for (const VmmPart& part : parts) {
    driver.cuMemUnmap(address + offset, part.bytes);
    offset += part.bytes;
  }
  return offset;
}

}  // namespace

VmmKind vmm_kind(const Driver& driver, int ordinal) {
  VmmKind kind;
  kind.ordinal = ordinal;
  kind.supported =
      attribute(driver, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, ordinal) &&
      attribute(driver, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, ordinal);
  kind.fabric = attribute(driver, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, ordinal);
  kind.rdma = attribute(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, ordinal);
  return kind;
}

void vmm_allow(const Driver& driver, CUdeviceptr address, uint64_t bytes, int ordinal) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  driver.check(driver.cuMemSetAccess(address, bytes, &access, 1),
               format("letting cuda:{} reach {} bytes at {:#x}", ordinal, bytes, address));
}

CUdeviceptr vmm_map(const Driver& driver, std::span<const VmmPart> parts, int ordinal) {
  uint64_t bytes = 0;
  for (const VmmPart& part : parts) bytes += part.bytes;
  CUdeviceptr address = 0;
  CUresult result = driver.cuMemAddressReserve(&address, bytes, 0, 0, 0);
  const bool reserved = result == CUDA_SUCCESS;
  size_t mapped = 0;
  for (uint64_t offset = 0; result == CUDA_SUCCESS && mapped < parts.size();) {
    result = driver.cuMemMap(address + offset, parts[mapped].bytes, 0, parts[mapped].handle, 0);
    if (result == CUDA_SUCCESS) offset += parts[mapped++].bytes;
  }
  for (const VmmPart& part : parts) driver.cuMemRelease(part.handle);
  if (result != CUDA_SUCCESS) {
    unmap(driver, address, parts.first(mapped));
    if (reserved) driver.cuMemAddressFree(address, bytes);
    driver.check(result, format("mapping {} bytes for cuda:{}", bytes, ordinal));
  }
  try {
    vmm_allow(driver, address, bytes, ordinal);
  } catch (...) {
    vmm_free(driver, address, parts);
    throw;
  }
  return address;
}

CUdeviceptr vmm_allocate(const Driver& driver, VmmKind& kind, uint64_t& bytes) {
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = create(driver, kind, bytes, handle);
  if (kind.fabric && result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) {
    VmmKind without = kind;
    without.fabric = false;
    result = create(driver, without, bytes, handle);
    if (result == CUDA_SUCCESS) kind.fabric = false;
  }
  driver.check(result, format("allocating {} bytes on cuda:{}", bytes, kind.ordinal));
  return vmm_map(driver, std::array{VmmPart{handle, bytes}}, kind.ordinal);
}

void vmm_free(const Driver& driver, CUdeviceptr address, uint64_t bytes) noexcept {
  vmm_free(driver, address, std::array{VmmPart{0, bytes}});
}

void vmm_free(const Driver& driver, CUdeviceptr address, std::span<const VmmPart> parts) noexcept {
  driver.cuMemAddressFree(address, unmap(driver, address, parts));
}

}  // namespace pw::cuda
