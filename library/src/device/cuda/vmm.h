// Allocates memory with CUDA's virtual memory management (cuMemCreate), which other processes can map by a
// file descriptor or a fabric handle.
#pragma once

#include <cstdint>
#include <span>

#include "device/cuda/driver.h"

namespace pw::cuda {

/// The properties for cuMemCreate on one GPU.
struct VmmKind {
  int ordinal = 0;
  bool supported = false;  ///< the GPU supports virtual memory management and descriptors for it
  bool fabric = false;     ///< it supports fabric handles, too
  bool rdma = false;       ///< NICs can access the memory
};

/// A handle of VMM memory, and how many bytes it has.
struct VmmPart {
  CUmemGenericAllocationHandle handle = 0;
  uint64_t bytes = 0;
};

VmmKind vmm_kind(const Driver& driver, int ordinal);

/// Allocates and maps at least `bytes` bytes on GPU kind.ordinal, whose context is current; sets `bytes` to
/// the allocated size. Fabric handles need a service that is often not set up: if they are refused, allocates
/// memory without them and clears kind.fabric. Throws Error.
CUdeviceptr vmm_allocate(const Driver& driver, VmmKind& kind, uint64_t& bytes);
void vmm_free(const Driver& driver, CUdeviceptr address, uint64_t bytes) noexcept;
/// The same for memory that vmm_map() mapped from several parts.
void vmm_free(const Driver& driver, CUdeviceptr address, std::span<const VmmPart> parts) noexcept;

/// Maps these parts one behind the other for GPU `ordinal` and releases their handles, also on failure; the
/// mappings keep the memory. Throws Error.
CUdeviceptr vmm_map(const Driver& driver, std::span<const VmmPart> parts, int ordinal);

/// Lets GPU `ordinal` read and write memory that is mapped in this process. Throws Error.
void vmm_allow(const Driver& driver, CUdeviceptr address, uint64_t bytes, int ordinal);

}  // namespace pw::cuda
