// Determines what one rank sends and receives to refresh the halos of distributed arrays: every face goes
// directly from its owner's array into the neighbour's halo. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "array/distribution.h"
#include "peerway/peerway.h"

namespace pw::array {

/// A piece of a face, edge or corner, at this rank's end.
struct Face {
  int rank = 0;  ///< the other end; this rank itself if a periodic dimension has one part
  int tag = 0;   ///< the same at both ends: computed from the array, the direction and the piece
  uint32_t array = 0;
  pw_block block{};  ///< its offset is relative to the first byte of the rank's part with its shadow
};

struct Halo {
  std::vector<Face> sends;
  std::vector<Face> receives;
};

/// Returns the strides of an array in a rank's memory, from Distribution::strides.
using StridesOf = std::function<ArrayStrides(int rank, uint32_t array)>;

/// With `corners`, edges and corners are included, each directly from its owner. Throws Error.
Halo halo_of(std::span<const Distribution> arrays, const StridesOf& strides_of, int rank, bool corners);

}  // namespace pw::array
