// Exports CUDA memory to other processes and maps what they export: one pair of functions for each kind of
// handle.
#pragma once

#include <memory>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace pw::cuda {

/// Fills in the handle of `exported` (its descriptor or its handle_bytes) for the allocation. Throws Error.
void export_handle(const Driver& driver, const Allocation& allocation, Export& exported);

/// Maps another process's allocation for GPU `ordinal`, whose `context` is current. Throws Error.
std::shared_ptr<Mapping> import_handle(const Driver& driver, const Export& exported, int ordinal,
                                       CUcontext context);

/// Returns memory of this process, which needs no mapping; if it lies on GPU `owner`, allows GPU `ordinal` to
/// access it. Throws Error.
std::shared_ptr<Mapping> own_memory(const Driver& driver, const Export& exported, int ordinal, int owner);

/// Releases what export_handle() made for the key: the descriptors.
void forget_handle(const Export& exported) noexcept;

/// Exports the VMM allocation that is mapped at `address` by a file descriptor, which the caller owns. Throws
/// Error.
int vmm_descriptor(const Driver& driver, uint64_t address, uint64_t bytes);

/// Opens a VMM allocation by a descriptor that vmm_descriptor() made in the process that `exported` names.
/// The caller owns the handle. Throws Error.
CUmemGenericAllocationHandle vmm_handle(const Driver& driver, int descriptor, const Export& exported);

/// Copies another process's file descriptor. That process must belong to the same user and allow it (see
/// allow_attachment). Throws Error.
int descriptor_of(int process, int descriptor);

}  // namespace pw::cuda
