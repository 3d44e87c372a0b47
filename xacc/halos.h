// Reflects: plans that are prepared once for the same arrays and widths.
#pragma once

#include <cstdint>

namespace pwx {

/// An array is freed: its plans end.
void forget_halos_of(uint64_t array_id);
void free_halos();

}  // namespace pwx
