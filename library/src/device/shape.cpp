#include "device/shape.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "device/overlap.h"

namespace pw {
namespace {

uint64_t multiply(uint64_t a, uint64_t b, const char* name) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error(PW_OUT_OF_RANGE, format("{} of {} times {} bytes overflows 64 bits", name, a, b));
  return product;
}

uint64_t add(uint64_t a, uint64_t b, const char* name) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    throw Error(PW_OUT_OF_RANGE, format("{} of {} plus {} bytes overflows 64 bits", name, a, b));
  return sum;
}

// Checks the numbers of one side, and returns the distance from its first byte to one past its last.
uint64_t checked_extent(const pw_block& block, const Described& span) {
  if (block.dims > PW_MAX_DIMS)
    throw Error(PW_INVALID_ARGUMENT, format("a block of {} dimensions in the {}; at most {}", block.dims,
                                            span.text(), PW_MAX_DIMS));
  uint64_t extent = block.block_bytes;
  for (uint32_t d = 0; d < block.dims; ++d) {
    if (block.count[d] == 0) return 0;
    if (block.count[d] == 1) continue;
    if (block.stride[d] <= 0)
      throw Error(PW_INVALID_ARGUMENT, format("stride {} in dimension {} of the {}; strides must be positive",
                                              block.stride[d], d, span.text()));
    const auto stride = static_cast<uint64_t>(block.stride[d]);
    extent = add(extent, multiply(block.count[d] - 1, stride, "an extent"), "an extent");
  }
  return extent;
}

// Dimensions may nest in any order (a transpose is fine) or interleave, but no two blocks may share a byte.
void check_overlap(const pw_block& block, const Described& span) {
  const Overlap overlap = find_overlap(block);
  if (overlap.kind == Overlap::Kind::none) return;
  const std::string problem =
      format("stride {} in dimension {} of the {} is smaller than the {} bytes within it",
             block.stride[overlap.dimension], overlap.dimension, span.text(), overlap.within);
  if (overlap.kind == Overlap::Kind::some)
    throw Error(PW_INVALID_ARGUMENT,
                format("{}, so that blocks of {} bytes overlap", problem, block.block_bytes));
  throw Error(
      PW_INVALID_ARGUMENT,
      format("{}, and whether blocks of {} bytes overlap is not known after {} steps; use strides that "
             "nest: each at least as large as what the smaller ones span",
             problem, block.block_bytes, kOverlapSteps));
}

void check_span(const pw_block& block, const Described& span) {
  const uint64_t extent = checked_extent(block, span);
  if (block.offset > span.bytes || extent > span.bytes - block.offset)
    throw Error(PW_OUT_OF_RANGE,
                format("{} bytes at offset {} go past the end of the {}", extent, block.offset, span.text()));
  if (block.dims == 0 || extent == 0) return;
  if (extent > kMaxExtent)
    throw Error(PW_OUT_OF_RANGE, format("blocks that span {} bytes of the {}; at most {} are allowed", extent,
                                        span.text(), kMaxExtent));
  check_overlap(block, span);
}

Shape shape_of(const pw_block& block) {
  Shape shape{.block_bytes = block.block_bytes, .dims = block.dims};
  std::copy_n(block.count, block.dims, shape.count.begin());
  return shape;
}

void drop(Layout& layout, uint32_t d) {
  for (uint32_t i = d; i + 1 < layout.shape.dims; ++i) {
    layout.shape.count[i] = layout.shape.count[i + 1];
    layout.to[i] = layout.to[i + 1];
    layout.from[i] = layout.from[i + 1];
  }
  const uint32_t last = --layout.shape.dims;
  layout.shape.count[last] = 0;
  layout.to[last] = layout.from[last] = 0;
}

// Sorts dimensions by the target's strides, slowest first: neighbours in memory become neighbours in the
// layout, and writes go through the target in one direction.
void sort_dimensions(Layout& layout) {
  for (uint32_t d = 1; d < layout.shape.dims; ++d)
    for (uint32_t i = d; i > 0 && layout.to[i - 1] < layout.to[i]; --i) {
      std::swap(layout.shape.count[i - 1], layout.shape.count[i]);
      std::swap(layout.to[i - 1], layout.to[i]);
      std::swap(layout.from[i - 1], layout.from[i]);
    }
}

// Whether `count` steps of `stride` equal one step of `outer`. Uses 128 bits, so that the product always
// fits.
bool continues(uint64_t count, int64_t stride, int64_t outer) {
  return static_cast<__int128>(count) * stride == outer;
}

void simplify(Layout& layout) {
  Shape& shape = layout.shape;
  for (uint32_t d = shape.dims; d-- > 0;)
    if (shape.count[d] == 1) drop(layout, d);
  sort_dimensions(layout);
  for (uint32_t d = shape.dims; d-- > 1;) {
    if (!continues(shape.count[d], layout.to[d], layout.to[d - 1]) ||
        !continues(shape.count[d], layout.from[d], layout.from[d - 1]))
      continue;
    shape.count[d] *= shape.count[d - 1];
    drop(layout, d - 1);
  }
  if (shape.dims > 0) {
    const uint32_t last = shape.dims - 1;
    const auto block = static_cast<int64_t>(shape.block_bytes);
    if (layout.to[last] == block && layout.from[last] == block) {
      shape.block_bytes *= shape.count[last];
      drop(layout, last);
    }
  }
}

}  // namespace

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  uint64_t inner = shape.block_bytes;
  for (uint32_t d = shape.dims; d-- > 0;) {
    strides[d] = static_cast<int64_t>(inner);
    inner *= shape.count[d];
  }
  return strides;
}

void require_writable(const Described& span) {
  if (span.access == Access::read_only)
    throw Error(
        PW_INVALID_ARGUMENT,
        format("the {} was registered as read-only: it can be a source, never a target", span.text()));
}

Layout join(const pw_block& to, uint64_t to_span, const char* to_what, const pw_block& from,
            uint64_t from_span, const char* from_what) {
  const auto as_it_is = [](const void* name) { return std::string(static_cast<const char*>(name)); };
  return join(to, {to_span, Access::read_write, to_what, as_it_is}, from,
              {from_span, Access::read_write, from_what, as_it_is});
}

Layout join(const pw_block& to, const Described& to_span, const pw_block& from, const Described& from_span) {
  require_writable(to_span);
  check_span(to, to_span);
  check_span(from, from_span);
  const Shape to_shape = shape_of(to);
  const Shape from_shape = shape_of(from);
  if (to_shape.bytes() != from_shape.bytes())
    throw Error(PW_INVALID_ARGUMENT, format("the {} takes {} bytes but the {} gives {}", to_span.text(),
                                            to_shape.bytes(), from_span.text(), from_shape.bytes()));
  const bool same = to_shape.dims == from_shape.dims && to_shape.count == from_shape.count &&
                    to_shape.block_bytes == from_shape.block_bytes;
  if (!same && to_shape.dims > 0 && from_shape.dims > 0)
    throw Error(PW_INVALID_ARGUMENT,
                format("the {} and the {} have different counts or block sizes; make them equal, or one side "
                       "contiguous",
                       to_span.text(), from_span.text()));
  Layout layout;
  layout.shape = to_shape.dims >= from_shape.dims ? to_shape : from_shape;
  layout.to = layout.from = dense_strides(layout.shape);
  std::copy_n(to.stride, to_shape.dims, layout.to.begin());
  std::copy_n(from.stride, from_shape.dims, layout.from.begin());
  if (layout.shape.bytes() == 0) layout.shape = Shape{};
  simplify(layout);
  return layout;
}

Layout contiguous_layout(uint64_t bytes) {
  Layout layout;
  layout.shape.block_bytes = bytes;
  return layout;
}

Layout slice(const Layout& layout, uint64_t first, uint64_t count, uint64_t& to_offset,
             uint64_t& from_offset) {
  Layout part = layout;
  if (layout.shape.contiguous()) {
    part.shape.block_bytes = count;
    to_offset = from_offset = first;
    return part;
  }
  part.shape.count[0] = count;
  to_offset = first * static_cast<uint64_t>(layout.to[0]);
  from_offset = first * static_cast<uint64_t>(layout.from[0]);
  if (count == 1) drop(part, 0);
  return part;
}

ChunkCursor::ChunkCursor(const Layout& layout, uint64_t chunk_bytes) : layout_(layout) {
  const Shape& shape = layout.shape;
  if (shape.bytes() == 0) return;
  level_ = shape.dims;
  uint64_t inner = shape.block_bytes;
  while (level_ > 0 && inner <= chunk_bytes) {
    --level_;
    inner_bytes_ = inner;
    inner *= shape.count[level_];
  }
  if (level_ == shape.dims) {  // one block, or blocks larger than a chunk: cut by bytes
    inner_bytes_ = 1;
    length_ = shape.block_bytes;
  } else {
    length_ = shape.count[level_];
  }
  step_ = std::max<uint64_t>(1, chunk_bytes / inner_bytes_);
  done_ = false;
}

bool ChunkCursor::next(Chunk& chunk) {
  if (done_) return false;
  const Shape& shape = layout_.shape;
  const uint64_t count = std::min(step_, length_ - position_);
  const bool cut_block = level_ == shape.dims;
  chunk.layout = Layout{};
  chunk.to_offset = chunk.from_offset = 0;
  for (uint32_t d = 0; d < level_; ++d) {
    chunk.to_offset += index_[d] * static_cast<uint64_t>(layout_.to[d]);
    chunk.from_offset += index_[d] * static_cast<uint64_t>(layout_.from[d]);
  }
  if (cut_block) {
    chunk.layout.shape.block_bytes = count;
    chunk.to_offset += position_;
    chunk.from_offset += position_;
  } else {
    Shape& part = chunk.layout.shape;
    part.block_bytes = shape.block_bytes;
    for (uint32_t d = level_; d < shape.dims; ++d) {
      part.count[part.dims] = d == level_ ? count : shape.count[d];
      chunk.layout.to[part.dims] = layout_.to[d];
      chunk.layout.from[part.dims] = layout_.from[d];
      ++part.dims;
    }
    chunk.to_offset += position_ * static_cast<uint64_t>(layout_.to[level_]);
    chunk.from_offset += position_ * static_cast<uint64_t>(layout_.from[level_]);
  }
  advance(count);
  return true;
}

void ChunkCursor::advance(uint64_t count) {
  position_ += count;
  if (position_ < length_) return;
  position_ = 0;
  for (uint32_t d = level_; d-- > 0;) {
    if (++index_[d] < layout_.shape.count[d]) return;
    index_[d] = 0;
  }
  done_ = true;
}

}  // namespace pw
