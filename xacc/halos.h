// Reflects: plans that are prepared once for the same arrays and widths.
#pragma once

#include <cstdint>

namespace pwx {

/// An array is freed: its plans end.
void forget_halos_of(uint64_t array_id);
/// A copy on the GPU is freed: so do the plans over it.
void forget_halos_of_present(uint64_t id);
void free_halos();

}  // namespace pwx
