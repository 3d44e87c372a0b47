// Sections of arrays in memory: the places of their elements, packing, and the blocks to transfer. Pure
// functions.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "peerway/xacc/runtime.h"
#include "xacc/runtime/mapping/halo_boxes.h"

namespace pwx {

/// The layout of a section in memory: its free dimensions, and the offset of its first element.
struct SectionLayout {
  std::vector<long> counts, strides;
  long offset = 0;
  size_t element_bytes = 0;

  [[nodiscard]] size_t elements() const {
    size_t all = 1;
    for (const long count : counts) all *= static_cast<size_t>(count);
    return all;
  }
};

/// The layout of a section of an array with these extents. Throws Failure if a subscript is outside the
/// array, whose name is `name`.
SectionLayout layout_of(int ndims, const long* extents, size_t element_bytes, const pwx_triplet* dims,
                        const char* name);

/// Calls `body(offset)` for each element; the last dimension varies fastest.
template <typename Body>
void each_element_of(const SectionLayout& layout, Body&& body) {
  if (layout.elements() == 0) return;
  std::array<long, PWX_MAX_DIMS> at{};
  for (;;) {
    long offset = layout.offset;
    for (size_t d = 0; d < layout.counts.size(); ++d) offset += at[d] * layout.strides[d];
    body(offset);
    size_t d = layout.counts.size();
    while (d > 0 && ++at[d - 1] == layout.counts[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

void pack(std::byte* to, const std::byte* from, const SectionLayout& layout);
void unpack(std::byte* to, const std::byte* from, const SectionLayout& layout);

/// The layout of the same elements packed contiguously, from offset `at` on.
SectionLayout packed_as(const SectionLayout& layout, size_t at);

/// The blocks that transfer the elements of one to the other: `to` is in `there`, `from` in `here`. One of
/// them may be a single element. With negative steps, each element is a block.
std::vector<BlockPair> blocks_between(const SectionLayout& there, const SectionLayout& here);

}  // namespace pwx
