// The boxes that a reflect moves: elements that one node owns and another has in its shadow. Pure functions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "peerway/peerway.h"
#include "xacc/runtime/mapping/mapping.h"

namespace pwx {

using Widths = std::array<pwx_width, PWX_MAX_DIMS>;

/// One box in the shadow of a receiver.
struct Box {
  int owner = 0;                       ///< the number of the node that owns its elements
  std::array<Range, PWX_MAX_DIMS> to;  ///< subscripts in the receiver's shadow; they may be outside the array
  std::array<Range, PWX_MAX_DIMS> from;  ///< subscripts of the same elements at the owner
};

/// The widths that a reflect without the clause width refreshes.
Widths whole_shadow(const pwx_array& a);

/// Throws Failure if widths do not fit the array.
void check_widths(const pwx_array& a, const Widths& widths);

/// The boxes that the array's node number `receiver` needs. With `corners` the corners, too, directly from
/// their owners.
std::vector<Box> needs_of(const pwx_array& a, int receiver, const Widths& widths, bool corners);

/// One dimension of a box: its elements, and their strides in bytes at both ends.
struct BoxDim {
  long count = 1;
  long to = 0;
  long from = 0;
};
struct BlockPair {
  pw_block to{};
  pw_block from{};
};

/// Splits a box into operations of at most PW_MAX_DIMS dimensions: dimensions are merged where both ends
/// allow it, and cut if there are still too many.
std::vector<BlockPair> blocks_of(std::span<const BoxDim> dims, long element_bytes, long to_offset,
                                 long from_offset);

/// The blocks of a box, between the memory of its owner and of its receiver.
std::vector<BlockPair> blocks_of(const pwx_array& a, const Box& box, int receiver);

}  // namespace pwx
