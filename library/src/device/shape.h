// The shape of a transfer: blocks of bytes at regular strides in up to four dimensions; index 0 is the
// slowest. A shape has a count and strides for each dimension, never a list of pieces.
#pragma once

#include <array>
#include <cstdint>
#include <string>

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

/// A shape with the positions of its blocks on both sides, in the fewest dimensions. The target's slowest
/// dimension comes first, neighbouring blocks are merged, and dimensions of one element are dropped.
struct Layout {
  Shape shape;
  Strides to{};
  Strides from{};
};

/// Checks the two sides of an operation against the ranges they must stay in, and joins them. Throws
/// Error(PW_OUT_OF_RANGE) or Error(PW_INVALID_ARGUMENT) with the value and the allowed range. `to_what` and
/// `from_what` describe the ranges in messages, e.g. "remote region (1048576 bytes, rank 3)".
Layout join(const pw_block& to, uint64_t to_span, const char* to_what, const pw_block& from,
            uint64_t from_span, const char* from_what);

/// Whether the memory of a region may be written, by peers and by this rank's own operations.
enum class Access : uint8_t { read_write = 0, read_only = 1 };

/// A range whose description is made only if something is wrong with it.
struct Described {
  uint64_t bytes;
  Access access;
  const void* object;
  std::string (*describe)(const void* object);
  [[nodiscard]] std::string text() const { return describe(object); }
};

/// Throws Error(PW_INVALID_ARGUMENT) where the span is read-only.
void require_writable(const Described& span);

/// The same; a target that is read-only throws Error(PW_INVALID_ARGUMENT).
Layout join(const pw_block& to, const Described& to_span, const pw_block& from, const Described& from_span);

/// Returns the strides of `shape` without gaps between its blocks.
Strides dense_strides(const Shape& shape);

/// Returns the layout of `bytes` contiguous bytes on both sides.
Layout contiguous_layout(uint64_t bytes);

/// Returns the part of `layout` from index `first` on, `count` long, along its slowest dimension (in bytes if
/// it is contiguous), and where that part begins on both sides.
Layout slice(const Layout& layout, uint64_t first, uint64_t count, uint64_t& to_offset,
             uint64_t& from_offset);

/// A part of a layout that fits into a chunk, and where it begins on both sides.
struct Chunk {
  Layout layout;
  uint64_t to_offset = 0;
  uint64_t from_offset = 0;
};

/// Walks a layout in chunks of at most `chunk_bytes`. The order is the same everywhere, so two processes
/// agree on what each chunk holds without exchanging anything.
class ChunkCursor {
 public:
  ChunkCursor() = default;
  ChunkCursor(const Layout& layout, uint64_t chunk_bytes);
  bool next(Chunk& chunk);  ///< returns false after the last chunk

 private:
  void advance(uint64_t count);

  Layout layout_;
  uint32_t level_ = 0;        ///< the dimension that is cut; `dims` if blocks themselves are cut
  uint64_t inner_bytes_ = 1;  ///< bytes of one index of that dimension
  uint64_t length_ = 0;
  uint64_t step_ = 1;
  uint64_t position_ = 0;
  std::array<uint64_t, PW_MAX_DIMS> index_{};
  bool done_ = true;
};

}  // namespace pw
