// Exports CUDA memory to other processes and maps what they export: one pair of functions for each kind of
// handle.
#pragma once

#include <memory>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace pw::cuda {

/// Fills in the handle of `exported` (its descriptor or its handle_bytes) for the allocation. Throws Error.
void export_handle(const Driver& driver, const Allocation& allocation, Export& exported);

/// Maps the allocation of another process for GPU `ordinal`, whose `context` is current. Throws Error.
std::shared_ptr<Mapping> import_handle(const Driver& driver, const Export& exported, int ordinal,
                                       CUcontext context);

/// Memory of this very process, which needs no mapping, but that GPU `ordinal` must be allowed to reach when
/// it lies on GPU `owner`. Throws Error.
std::shared_ptr<Mapping> own_memory(const Driver& driver, const Export& exported, int ordinal, int owner);

/// A copy of another process's file descriptor. The other process must be of the same user and allow it (see
/// allow_attachment). Throws Error.
int descriptor_of(int process, int descriptor);

}  // namespace pw::cuda
