// The memory of distributed arrays, and which array an address belongs to.
#pragma once

#include <cstdint>
#include <memory>

#include "peerway/peerway.hpp"
#include "xacc/mapping.h"

/// One array that is allocated.
struct pwx_array_state {
  uint64_t id;      ///< never given twice
  pwx_array shape;  ///< as it was allocated
  peerway::Region memory;
  uint64_t bytes;  ///< of the array; the region may be larger
};

namespace pwx {

/// Throws Failure unless the array is allocated. `what` is asked for it: "reflect".
const pwx_array_state& allocated(const pwx_array& a, const char* what);

/// Every array, and what was made for them, before the context ends.
void free_everything();

/// How many arrays have been freed: what was bound before may be stale.
uint64_t freed();

/// The dimensions of a node's memory.
std::array<Placed, PWX_MAX_DIMS> placed_at(const pwx_array& a, int number);
Strides strides_at(const pwx_array& a, const std::array<Placed, PWX_MAX_DIMS>& placed);

}  // namespace pwx
