#include "device/cuda/pointer.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace pw::cuda {
namespace {

// A bijection that mixes all bits (the finalizer of SplitMix64, Steele et al. 2014).
uint64_t spread(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// HIP says of memory no more than whether it has an IPC handle.
Handle hip_handle_of(const PointerFacts& facts, std::string& why_none) {
  if (facts.legacy_ipc != 0) return kIpc;
  why_none = format(
      "{} cannot be shown to another process; use hipMalloc or Peerway's own allocation; until then copies "
      "go "
      "through the host",
      facts.managed != 0 ? "managed memory (hipMallocManaged)"
                         : "memory without a HIP IPC handle (of a pool, or mapped by hipMemMap)");
  return Handle::none;
}

Handle handle_of(const PointerFacts& facts, pw_device_kind kind, std::string& why_none) {
  if (kind == PW_HIP) return hip_handle_of(facts, why_none);
  constexpr const char* otherwise =
      "use cudaMalloc or Peerway's own allocation; until then copies go through the host";
  const bool by_fd = (facts.handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  const bool by_fabric = (facts.handle_types & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  if (facts.managed != 0) {
    why_none = format("managed memory (cudaMallocManaged) cannot be shown to another process; {}", otherwise);
    return Handle::none;
  }
  if (facts.legacy_ipc != 0) return kIpc;
  if (facts.pool != 0) {
    if (by_fd) return kPool;
    why_none = format(
        "it comes from a memory pool (cudaMallocAsync) made without a shareable handle type; make the pool "
        "with cudaMemPoolProps.handleTypes = cudaMemHandleTypePosixFileDescriptor, or {}",
        otherwise);
    return Handle::none;
  }
  if (by_fd) return kFd;
  if (by_fabric) return kFabric;
  why_none = format(
      "it was made by cuMemCreate without a shareable handle type; ask for "
      "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR in CUmemAllocationProp.requestedHandleTypes, or {}",
      otherwise);
  return Handle::none;
}

}  // namespace

PointerFacts describe_pointer(const Driver& driver, uint64_t address) {
  PointerFacts facts;
  int attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,           CU_POINTER_ATTRIBUTE_BUFFER_ID,
      CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,      CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
      CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,     CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,    CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
  };
  // Answers are 1, 4 or 8 bytes wide; in zeroed 8-byte variables all read correctly on a little-endian host.
  void* data[] = {&facts.memory_type, &facts.ordinal,     &facts.managed,       &facts.buffer,
                  &facts.block,       &facts.legacy_ipc,  &facts.handle_types,  &facts.pool,
                  &facts.range_start, &facts.range_bytes, &facts.mapping_start, &facts.mapping_bytes};
  static_assert(std::size(attributes) == std::size(data));
  if (driver.cuPointerGetAttributes(std::size(attributes), attributes, data, address) != CUDA_SUCCESS)
    return {};
  return facts;
}

uint64_t allocation_id(uint64_t buffer, uint64_t block) {
  if (buffer == 0 && block == 0) return 0;
  // For cuMemAlloc the first id differs between allocations, for memory mapped by cuMemMap the second does;
  // this uses both.
  const uint64_t id = spread(buffer + spread(block));
  return id == 0 ? 1 : id;
}

uint64_t allocation_id_at(const Driver& driver, uint64_t address) {
  uint64_t buffer = 0, block = 0;
  int attributes[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID};
  void* data[] = {&buffer, &block};
  if (driver.cuPointerGetAttributes(2, attributes, data, address) != CUDA_SUCCESS) return 0;
  return allocation_id(buffer, block);
}

std::vector<PointerFacts> describe_range(const Driver& driver, uint64_t address, uint64_t bytes) {
  std::vector<PointerFacts> mappings{describe_pointer(driver, address)};
  const PointerFacts& first = mappings.front();
  const uint64_t end = std::min(address + bytes, first.range_start + first.range_bytes);
  while (mappings.back().is_vmm() && mappings.back().mapping_end() < end)
    mappings.push_back(describe_pointer(driver, mappings.back().mapping_end()));
  return mappings;
}

std::optional<Allocation> allocation_of(std::span<const PointerFacts> mappings, uint64_t address,
                                        uint64_t bytes, DeviceId device) {
  const PointerFacts& first = mappings.front();
  if (!first.is_device() || static_cast<int>(first.ordinal) != device.index) return std::nullopt;
  Allocation allocation;
  allocation.device = device;
  allocation.id = allocation_id(first.buffer, first.block);
  allocation.base = reinterpret_cast<std::byte*>(first.range_start);
  allocation.bytes = first.range_bytes;
  allocation.handle = handle_of(first, device.kind, allocation.why_none);
  if (!first.is_vmm()) return allocation;
  allocation.base = reinterpret_cast<std::byte*>(first.mapping_start);
  allocation.bytes = first.mapping_bytes;
  if (address + bytes <= first.mapping_end()) return allocation;
  // The memory lies in several mappings. A hole between them, where the driver knows nothing, ends it.
  bool by_descriptors = allocation.handle == kFd;
  for (const PointerFacts& mapping : mappings.subspan(1)) {
    if (!mapping.is_vmm() || mapping.ordinal != first.ordinal) return allocation;
    allocation.bytes = mapping.mapping_end() - first.mapping_start;
    by_descriptors = handle_of(mapping, device.kind, allocation.why_none) == kFd && by_descriptors;
    allocation.handle = by_descriptors ? kSegments : Handle::none;
  }
  if (!by_descriptors && allocation.why_none.empty())
    allocation.why_none = format(
        "its {} bytes lie in several cuMemCreate allocations, of which some have a fabric handle only; ask "
        "for "
        "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, too, or register them one by one",
        bytes);
  return allocation;
}

}  // namespace pw::cuda
