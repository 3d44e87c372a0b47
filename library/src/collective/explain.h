// What each method of a collective is estimated to take, for the Python module.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collective/choice.h"
#include "peerway/peerway.h"

namespace pw::collective {

struct EstimatesOfSize {
  uint64_t bytes = 0;               ///< of the array, or of each rank's part
  std::vector<Estimate> estimates;  ///< the cheapest first
};

/// Estimates a collective of float32 among so many ranks of one host, whose memory is like the region and the
/// remote, for the powers of two from 8 bytes to 1 GiB. Throws Error if no method of sends is available.
std::vector<EstimatesOfSize> estimates_for(pw_context* context, const pw_remote* remote,
                                           const pw_region* region, pw_collective_kind kind, pw_order order,
                                           uint32_t ranks);

}  // namespace pw::collective
