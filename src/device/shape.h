// The shape of what is moved: blocks of bytes at regular strides in up to four dimensions, index 0 the slowest. Four
// numbers a dimension, never a list of pieces.
#pragma once

#include <array>
#include <cstdint>

#include "peerway/peerway.h"

namespace pw {

using Strides = std::array<int64_t, PW_MAX_DIMS>;

struct Shape {
  uint64_t block_bytes = 0;
  uint32_t dims = 0;
  std::array<uint64_t, PW_MAX_DIMS> count{};

  [[nodiscard]] uint64_t blocks() const {
    uint64_t product = 1;
    for (uint32_t d = 0; d < dims; ++d) product *= count[d];
    return product;
  }
  [[nodiscard]] uint64_t bytes() const { return block_bytes * blocks(); }
  [[nodiscard]] bool contiguous() const { return dims == 0; }
};

/// A shape with where its blocks lie on both sides, in the fewest dimensions: neighbouring blocks are merged and
/// dimensions of one element dropped.
struct Layout {
  Shape shape;
  Strides to{};
  Strides from{};
};

/// Checks two sides of an operation against the spans they must stay in and joins them. Throws Error: PW_OUT_OF_RANGE
/// or PW_INVALID_ARGUMENT, naming the value and the allowed range. `to_what` and `from_what` describe the spans in
/// messages, e.g. "remote region (1048576 bytes, rank 3)".
Layout join(const pw_block &to, uint64_t to_span, const char *to_what, const pw_block &from, uint64_t from_span,
            const char *from_what);

/// The bytes between the first and one past the last byte that `block` touches.
uint64_t extent(const pw_block &block);

/// The part of `layout` that holds its blocks in [first, first + blocks) along the slowest dimension; byte offsets of
/// that part on both sides are returned through to_offset and from_offset.
Layout slice(const Layout &layout, uint64_t first, uint64_t count, uint64_t &to_offset, uint64_t &from_offset);

}  // namespace pw
