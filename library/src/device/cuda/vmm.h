// Memory made with CUDA's virtual memory management (cuMemCreate): the kind that other processes can map by a
// file descriptor or a fabric handle.
#pragma once

#include <cstdint>

#include "device/cuda/driver.h"

namespace pw::cuda {

/// The properties that cuMemCreate is given for one GPU.
struct VmmKind {
  int ordinal = 0;
  bool supported = false;  ///< the GPU has virtual memory management and descriptors for it
  bool fabric = false;     ///< fabric handles too
  bool rdma = false;       ///< memory that a NIC can reach
};

VmmKind vmm_kind(const Driver& driver, int ordinal);

/// Makes and maps at least `bytes` bytes for GPU kind.ordinal, whose context is current; `bytes` becomes the
/// size that was made. Fabric handles need a service that is often not set up: when they are refused, memory
/// without is made and kind.fabric is cleared. Throws Error.
CUdeviceptr vmm_allocate(const Driver& driver, VmmKind& kind, uint64_t& bytes);
void vmm_free(const Driver& driver, CUdeviceptr address, uint64_t bytes) noexcept;

/// Maps a handle for GPU `ordinal` and lets the handle go, also on failure; the mapping keeps the memory.
/// Throws Error.
CUdeviceptr vmm_map(const Driver& driver, CUmemGenericAllocationHandle handle, uint64_t bytes, int ordinal);

/// Lets GPU `ordinal` read and write memory that is mapped in this process. Throws Error.
void vmm_allow(const Driver& driver, CUdeviceptr address, uint64_t bytes, int ordinal);

}  // namespace pw::cuda
