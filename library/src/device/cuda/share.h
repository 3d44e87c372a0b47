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

/// Copies another process's file descriptor. That process must belong to the same user and allow it (see
/// allow_attachment). Throws Error.
int descriptor_of(int process, int descriptor);

}  // namespace pw::cuda
