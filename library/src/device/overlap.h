// Whether blocks at regular strides share a byte. Pure.
#pragma once

#include <cstdint>

#include "peerway/peerway.h"

namespace pw {

struct Overlap {
  enum class Kind : uint8_t {
    none,
    some,
    undecided,  ///< the strides interleave so irregularly that kOverlapSteps steps do not tell
  };
  Kind kind = Kind::none;
  uint32_t dimension = 0;  ///< whose stride is too small, or at which the steps were used up
  uint64_t within = 0;     ///< bytes that the dimensions with smaller strides span
};

/// Strides that nest, in any order, are decided in a few steps; those that interleave by a search.
inline constexpr uint32_t kOverlapSteps = 1 << 16;

/// Largest distance between the first and the last byte of a block for which find_overlap() is defined.
inline constexpr uint64_t kMaxExtent = uint64_t{1} << 61;

/// Strides of dimensions with more than one block must be positive, counts at least 1 and the extent at most
/// kMaxExtent.
Overlap find_overlap(const pw_block& block);

}  // namespace pw
