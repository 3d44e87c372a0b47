// Shares memory that consists of several VMM allocations side by side, such as an expandable segment of
// PyTorch. The owner writes a table of their file descriptors to shared memory, and the key carries one
// descriptor, the table's.
#pragma once

#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/vmm.h"
#include "device/device.h"

namespace pw::cuda {

/// Exports all VMM allocations of `allocation`. Returns the descriptor of their table, which the caller
/// closes with close_segments(). Throws Error.
int export_segments(const Driver& driver, const Allocation& allocation);

/// Closes the table and the descriptors in it.
void close_segments(int table) noexcept;

/// Imports all VMM allocations in the table of another process. Together they have exported.bytes. The caller
/// owns the handles. Throws Error.
std::vector<VmmPart> import_segments(const Driver& driver, const Export& exported);

}  // namespace pw::cuda
