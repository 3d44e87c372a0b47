// What CUDA reports about an address, and how memory at that address can be shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace pw::cuda {

/// How CUDA memory is exported to other processes.
inline constexpr Handle kIpc = handle_of_device(0);     ///< legacy CUDA IPC (cudaMalloc)
inline constexpr Handle kFd = handle_of_device(1);      ///< a file descriptor of a VMM allocation
inline constexpr Handle kFabric = handle_of_device(2);  ///< a fabric handle
inline constexpr Handle kPool =
    handle_of_device(3);  ///< a file descriptor of a memory pool, and which allocation in it

/// The driver's answers about one address; all zero where CUDA does not know it.
struct PointerFacts {
  uint64_t memory_type = 0;
  uint64_t ordinal = 0;
  uint64_t managed = 0;
  uint64_t buffer = 0;        ///< id of the allocation, never used twice by one process
  uint64_t block = 0;         ///< id of the physical memory behind it, never used twice either
  uint64_t legacy_ipc = 0;    ///< suitable for cuIpcGetMemHandle
  uint64_t handle_types = 0;  ///< a bit for each type that it can be exported as
  uint64_t pool = 0;          ///< the memory pool it comes from
  uint64_t range_start = 0;   ///< of the cuMemAlloc allocation, or of the reserved addresses
  uint64_t range_bytes = 0;
  uint64_t mapping_start = 0;  ///< of the cuMemCreate handle mapped there
  uint64_t mapping_bytes = 0;

  [[nodiscard]] bool is_host() const { return memory_type == CU_MEMORYTYPE_HOST && managed == 0; }
  [[nodiscard]] bool is_device() const { return managed != 0 || memory_type == CU_MEMORYTYPE_DEVICE; }
  /// Mapped by the program with cuMemMap.
  [[nodiscard]] bool is_vmm() const {
    return managed == 0 && legacy_ipc == 0 && pool == 0 && mapping_bytes != 0;
  }
};

PointerFacts describe_pointer(const Driver& driver, uint64_t address);

/// Allocation::id from the two ids of the driver; 0 where it has none.
uint64_t allocation_id(uint64_t buffer, uint64_t block);

/// The same as describe_pointer() and then the above, but queries only those two.
uint64_t allocation_id_at(const Driver& driver, uint64_t address);

/// The allocation around the `bytes` bytes at `address`, with the handle to export it by or the reason why it
/// has none. Nothing where it is not memory of GPU `ordinal`. Pure.
std::optional<Allocation> allocation_of(const PointerFacts& facts, uint64_t address, uint64_t bytes,
                                        int ordinal);

}  // namespace pw::cuda
