// Finds out what CUDA reports about an address, and how memory at that address can be shared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace pw::cuda {

/// The handles by which CUDA memory is shared with other processes.
inline constexpr Handle kIpc = handle_of_device(0);     ///< legacy CUDA IPC (cudaMalloc)
inline constexpr Handle kFd = handle_of_device(1);      ///< a file descriptor of a VMM allocation
inline constexpr Handle kFabric = handle_of_device(2);  ///< a fabric handle
inline constexpr Handle kPool = handle_of_device(3);    ///< a file descriptor of a memory pool, and data that
                                                        ///< identifies the allocation in it
inline constexpr Handle kSegments = handle_of_device(4);  ///< several VMM allocations side by side: a file
                                                          ///< descriptor of a table of their descriptors

/// The driver's answers about one address; all zero if CUDA does not know it.
struct PointerFacts {
  uint64_t memory_type = 0;
  uint64_t ordinal = 0;
  uint64_t managed = 0;
  uint64_t buffer = 0;        ///< id of the allocation; never reused within a process
  uint64_t block = 0;         ///< id of the physical memory behind it; never reused within a process
  uint64_t legacy_ipc = 0;    ///< suitable for cuIpcGetMemHandle
  uint64_t handle_types = 0;  ///< one bit for each handle type with which it can be exported
  uint64_t pool = 0;          ///< the memory pool it comes from
  uint64_t range_start = 0;   ///< start of the cuMemAlloc allocation, or of the reserved addresses
  uint64_t range_bytes = 0;
  uint64_t mapping_start = 0;  ///< start of the cuMemCreate handle mapped there
  uint64_t mapping_bytes = 0;

  [[nodiscard]] uint64_t mapping_end() const { return mapping_start + mapping_bytes; }
  [[nodiscard]] bool is_host() const { return memory_type == CU_MEMORYTYPE_HOST && managed == 0; }
  [[nodiscard]] bool is_device() const { return managed != 0 || memory_type == CU_MEMORYTYPE_DEVICE; }
  /// Whether the program mapped it with cuMemMap.
  [[nodiscard]] bool is_vmm() const {
    return managed == 0 && legacy_ipc == 0 && pool == 0 && mapping_bytes != 0;
  }
};

PointerFacts describe_pointer(const Driver& driver, uint64_t address);

/// Returns Allocation::id for the two ids of the driver; 0 if it has none.
uint64_t allocation_id(uint64_t buffer, uint64_t block);

/// Like describe_pointer() followed by allocation_id(), but asks only for the two ids.
uint64_t allocation_id_at(const Driver& driver, uint64_t address);

/// Returns describe_pointer() of `address` and, if it is VMM memory, of each further mapping of the `bytes`
/// bytes there, in order.
std::vector<PointerFacts> describe_range(const Driver& driver, uint64_t address, uint64_t bytes);

/// Returns the allocation around the `bytes` bytes at `address`, which describe_range() described, with the
/// handle to export it by or the reason why it has none. Returns nothing if it is not memory of `device`.
/// Pure.
std::optional<Allocation> allocation_of(std::span<const PointerFacts> mappings, uint64_t address,
                                        uint64_t bytes, DeviceId device);

}  // namespace pw::cuda
