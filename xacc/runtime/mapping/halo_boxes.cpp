#include "xacc/runtime/mapping/halo_boxes.h"

#include <algorithm>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

/// A part of one dimension in a receiver's memory: what it owns (side 0), or a piece of its shadow (side 1).
struct Stretch {
  int side;  ///< 0: owned, 1: shadow
  int part;  ///< the owner
  Range to;
  Range from;
};

/// Adds the shadow `wanted`, split where the owner changes and where it wraps around the ends.
void add_shadow(const pwx_array& a, int d, Range wanted, bool periodic, std::vector<Stretch>& stretches) {
  const long size = a.dim[d].size;
  for (long at = wanted.first; at <= wanted.last;) {
    const long wrapped = ((at % size) + size) % size;
    if (wrapped != at && !periodic) {
      ++at;
      continue;
    }
    const int part = owner_of_subscript(a, d, wrapped);
    long last = wrapped;
    for (const Range& range : owned_subscripts(a, d, part))
      if (range.first <= wrapped && wrapped <= range.last) last = range.last;
    const long count = std::min(last - wrapped, wanted.last - at) + 1;
    stretches.push_back({1, part, {at, at + count - 1}, {wrapped, wrapped + count - 1}});
    at += count;
  }
}

std::vector<Stretch> stretches_of(const pwx_array& a, int d, int part, const pwx_width& width) {
  std::vector<Stretch> stretches;
  const Range own = place(a, d, part).owned;
  if (own.count() == 0 || owned_subscripts(a, d, part).empty()) return stretches;
  stretches.push_back({0, part, own, own});
  const bool periodic = width.periodic != 0;
  Range below{own.first - width.lo, own.first - 1}, above{own.last + 1, own.last + width.hi};
  if (is_full(a.dim[d])) {
    below.first = std::max(below.first, 0L);
    above.last = std::min(above.last, a.dim[d].size - 1);
  }
  add_shadow(a, d, below, periodic, stretches);
  add_shadow(a, d, above, periodic, stretches);
  return stretches;
}

void check_width(const pwx_array& a, int d, const pwx_width& width) {
  const pwx_array_dim& dim = a.dim[d];
  const std::string which = text("dimension ", spoken_dimension(a, d), " of ", a.name);
  if (width.lo < 0 || width.hi < 0)
    refuse("reflect of ", which, " with a width of ", width.lo, ":", width.hi, "; it must be at least 0");
  if (is_full(dim)) {
    if (width.periodic != 0)
      refuse("reflect of ", which, " is periodic, but its shadow is full; give the shadow a width");
    return;
  }
  if (width.lo > dim.shadow[0] || width.hi > dim.shadow[1])
    refuse("reflect of ", which, " with a width of ", width.lo, ":", width.hi, ", but its shadow is ",
           dim.shadow[0], ":", dim.shadow[1], "; widen the shadow");
}

// The dimensions of more than one element, slowest first, merged where one continues the next at both ends.
std::vector<BoxDim> merged(std::span<const BoxDim> dims, long& block) {
  std::vector<BoxDim> list;
  std::ranges::copy_if(dims, std::back_inserter(list), [](const BoxDim& d) { return d.count > 1; });
  while (!list.empty() && list.back().to == block && list.back().from == block) {
    block *= list.back().count;
    list.pop_back();
  }
  for (size_t d = list.size(); d-- > 1;) {
    BoxDim& inner = list[d];
    const BoxDim& outer = list[d - 1];
    if (inner.count * inner.to != outer.to || inner.count * inner.from != outer.from) continue;
    inner.count *= outer.count;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(d) - 1);
  }
  return list;
}

pw_block block_at(long offset, long block_bytes, std::span<const BoxDim> dims, long BoxDim::* stride) {
  pw_block block{};
  block.size = sizeof block;
  block.offset = static_cast<uint64_t>(offset);
  block.block_bytes = static_cast<uint64_t>(block_bytes);
  block.dims = static_cast<uint32_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    block.count[d] = static_cast<uint64_t>(dims[d].count);
    block.stride[d] = dims[d].*stride;
  }
  return block;
}

}  // namespace

Widths whole_shadow(const pwx_array& a) {
  Widths widths{};
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_array_dim& dim = a.dim[d];
    auto& width = widths[static_cast<size_t>(d)];
    if (is_full(dim))
      width = {dim.size, dim.size, 0};
    else
      width = {dim.shadow[0], dim.shadow[1], 0};
  }
  return widths;
}

void check_widths(const pwx_array& a, const Widths& widths) {
  for (int d = 0; d < a.ndims; ++d) check_width(a, d, widths[static_cast<size_t>(d)]);
}

std::vector<Box> needs_of(const pwx_array& a, int receiver, const Widths& widths, bool corners) {
  const auto at = coordinates_of(*a.on->nodes, receiver);
  const Parts parts = parts_at(a, at.data());
  std::array<std::vector<Stretch>, PWX_MAX_DIMS> all;
  const auto ndims = static_cast<size_t>(a.ndims);
  for (size_t d = 0; d < ndims; ++d) {
    all[d] = stretches_of(a, static_cast<int>(d), parts[d], widths[d]);
    if (all[d].empty()) return {};
  }
  std::vector<Box> boxes;
  std::array<size_t, PWX_MAX_DIMS> chosen{};
  for (;;) {
    Box box;
    int sides = 0;
    auto owner = at;
    for (size_t d = 0; d < ndims; ++d) {
      const Stretch& stretch = all[d][chosen[d]];
      sides += stretch.side;
      box.to[d] = stretch.to;
      box.from[d] = stretch.from;
      const pwx_template_dim* t = template_dim(a, static_cast<int>(d));
      if (t != nullptr && t->nodes_dim >= 0) owner[static_cast<size_t>(t->nodes_dim)] = stretch.part;
    }
    box.owner = number_of(*a.on->nodes, owner.data());
    if (sides == 1 || (sides > 1 && corners)) boxes.push_back(box);
    size_t d = ndims;
    while (d > 0 && ++chosen[d - 1] == all[d - 1].size()) chosen[--d] = 0;
    if (d == 0) return boxes;
  }
}

std::vector<BlockPair> blocks_of(std::span<const BoxDim> dims, long element_bytes, long to_offset,
                                 long from_offset) {
  long block = element_bytes;
  std::vector<BoxDim> list = merged(dims, block);
  std::vector<std::pair<long, long>> starts{{to_offset, from_offset}};
  while (list.size() > PW_MAX_DIMS) {
    const auto shortest = std::ranges::min_element(list, {}, [](const BoxDim& d) { return d.count; });
    std::vector<std::pair<long, long>> cut;
    for (const auto& [to, from] : starts)
      for (long i = 0; i < shortest->count; ++i)
        cut.emplace_back(to + i * shortest->to, from + i * shortest->from);
    starts = std::move(cut);
    list.erase(shortest);
  }
  std::vector<BlockPair> blocks;
  blocks.reserve(starts.size());
  for (const auto& [to, from] : starts)
    blocks.push_back({block_at(to, block, list, &BoxDim::to), block_at(from, block, list, &BoxDim::from)});
  return blocks;
}

std::vector<BlockPair> blocks_of(const pwx_array& a, const Box& box, int receiver) {
  const auto side = [&](int number, auto&& fill) {
    const auto at = coordinates_of(*a.on->nodes, number);
    const Parts parts = parts_at(a, at.data());
    std::array<Placed, PWX_MAX_DIMS> placed;
    std::array<long, PWX_MAX_DIMS> extents{};
    for (int d = 0; d < a.ndims; ++d) {
      placed[static_cast<size_t>(d)] = place(a, d, parts[static_cast<size_t>(d)]);
      extents[static_cast<size_t>(d)] = placed[static_cast<size_t>(d)].ld;
    }
    const Strides strides = strides_of(a.ndims, extents.data(), a.element_bytes);
    for (int d = 0; d < a.ndims; ++d)
      fill(static_cast<size_t>(d), placed[static_cast<size_t>(d)], strides[static_cast<size_t>(d)]);
  };
  std::array<BoxDim, PWX_MAX_DIMS> dims;
  long to_offset = 0, from_offset = 0;
  side(receiver, [&](size_t d, const Placed& placed, long stride) {
    dims[d].count = box.to[d].count();
    dims[d].to = stride;
    to_offset += (box.to[d].first - placed.base) * stride;
  });
  side(box.owner, [&](size_t d, const Placed& placed, long stride) {
    dims[d].from = stride;
    from_offset += (box.from[d].first - placed.base) * stride;
  });
  return blocks_of({dims.data(), static_cast<size_t>(a.ndims)}, static_cast<long>(a.element_bytes), to_offset,
                   from_offset);
}

}  // namespace pwx
