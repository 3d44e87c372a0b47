// Decides whether blocks at regular strides share a byte. Pure.
#pragma once

#include <cstdint>

#include "peerway/peerway.h"

namespace pw {

struct Overlap {
  enum class Kind : uint8_t {
    none,
    some,
    undecided,  ///< the strides interleave so irregularly that kOverlapSteps steps do not decide
  };
  Kind kind = Kind::none;
  uint32_t dimension = 0;  ///< the dimension whose stride is too small, or at which the search ran out of
                           ///< steps
  uint64_t within = 0;     ///< bytes that the dimensions with smaller strides span
};

/// The limit of the search. Strides that nest, in any order, need only a few steps; strides that interleave
/// need a search.
inline constexpr uint32_t kOverlapSteps = 1 << 16;

/// The largest distance between the first and the last byte of a block for which find_overlap() is defined.
inline constexpr uint64_t kMaxExtent = uint64_t{1} << 61;

/// Strides of dimensions with more than one block must be positive, counts at least 1, and the extent at most
/// kMaxExtent.
Overlap find_overlap(const pw_block& block);

}  // namespace pw
