#include "device/cuda/pointer.h"

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

Handle handle_of(const PointerFacts& facts, std::string& why_none) {
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

std::optional<Allocation> allocation_of(const PointerFacts& facts, uint64_t address, uint64_t bytes,
                                        int ordinal) {
  if (!facts.is_device() || static_cast<int>(facts.ordinal) != ordinal) return std::nullopt;
  Allocation allocation;
  allocation.device = {PW_CUDA, ordinal};
  allocation.id = allocation_id(facts.buffer, facts.block);
  allocation.base = reinterpret_cast<std::byte*>(facts.range_start);
  allocation.bytes = facts.range_bytes;
  allocation.handle = handle_of(facts, allocation.why_none);
  if (!facts.is_vmm()) return allocation;
  const uint64_t mapping_end = facts.mapping_start + facts.mapping_bytes;
  if (address + bytes <= mapping_end || address + bytes > facts.range_start + facts.range_bytes) {
    allocation.base = reinterpret_cast<std::byte*>(facts.mapping_start);
    allocation.bytes = facts.mapping_bytes;
    return allocation;
  }
  allocation.handle = Handle::none;
  allocation.why_none = format(
      "its {} bytes span several cuMemCreate handles (the first ends after {} of them); register them handle "
      "by "
      "handle, or in PyTorch turn expandable_segments off",
      bytes, mapping_end - address);
  return allocation;
}

}  // namespace pw::cuda
