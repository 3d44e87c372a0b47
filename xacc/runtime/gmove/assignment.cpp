#include "xacc/runtime/gmove/assignment.h"

#include <algorithm>
#include <span>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/array_shape.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

Side side_of(const pwx_section& section, const char* which) {
  Side side{section, {}};
  if (side.distributed()) {
    allocated(*section.array, "gmove");
    if (section.ndims != section.array->ndims)
      refuse("gmove: ", section.array->name, " at the ", which, " has ", section.array->ndims,
             " dimensions, not ", section.ndims);
  }
  for (int d = 0; d < section.ndims; ++d) {
    const pwx_triplet& t = section.dim[d];
    const long count = t.is_index != 0 ? 1 : t.count;
    if (count < 0) refuse("gmove: a section of ", side.name(), " has a length of ", count);
    const long last = t.first + (count - 1) * (t.is_index != 0 ? 1 : t.step);
    if (count > 0 && (std::min(t.first, last) < 0 || std::max(t.first, last) >= side.extent(d)))
      refuse("gmove: subscripts ", side.spoken(d, t.first), " to ", side.spoken(d, last), " in dimension ",
             side.distributed() ? spoken_dimension(*section.array, d) : d, " of ", side.name(), " at the ",
             which, ", which has ", side.spoken(d, 0), " to ", side.spoken(d, side.extent(d) - 1));
    if (t.is_index == 0) side.free_dims.push_back(d);
  }
  return side;
}

/// The elements of a section's dimension that a part owns: their numbers in the section and their offsets in
/// memory.
Places owned_places(const Side& side, int d, int part, const Placed& placed, long stride) {
  const pwx_triplet& t = side.section.dim[d];
  const long step = t.is_index != 0 ? 1 : t.step, count = t.is_index != 0 ? 1 : t.count;
  Places places;
  for (long k = 0; k < count; ++k) {
    const long i = t.first + k * step;
    if (!side.distributed()) {
      places.emplace_back(k, i * stride);
    } else if (owner_of_subscript(*side.section.array, d, i) == part) {
      places.emplace_back(k, position(*side.section.array, d, placed, i) * stride);
    }
  }
  return places;
}

Owned owned_at(const Side& side, int number) {
  Owned owned;
  std::array<Placed, PWX_MAX_DIMS> placed;
  Parts parts{};
  Strides strides;
  if (side.distributed()) {
    placed = placed_at(*side.section.array, number);
    parts = parts_at(*side.section.array, coordinates_of(*side.section.array->on->nodes, number).data());
    strides = strides_at(*side.section.array, placed);
  } else {
    strides = strides_of(side.section.ndims, side.section.extent, side.section.element_bytes);
  }
  size_t free = 0;
  for (int d = 0; d < side.section.ndims; ++d) {
    const auto at = static_cast<size_t>(d);
    auto places = owned_places(side, d, parts[at], placed[at], strides[at]);
    if (places.empty()) owned.owns_some = false;
    if (side.section.dim[d].is_index != 0)
      owned.base += places.empty() ? 0 : places.begin()->second;
    else
      owned.places[free++] = std::move(places);
  }
  return owned;
}

std::vector<int> ranks_of(const pwx_nodes& nodes) { return {nodes.ranks, nodes.ranks + nodes.total}; }

/// The nodes of a side if other ranks may have other nodes by that name; else null.
const pwx_nodes* own_nodes(const Side& side) {
  return side.distributed() && side.section.array->on->nodes->own != 0 ? side.section.array->on->nodes
                                                                       : nullptr;
}

/// Elements at equal distances at both ends: the offsets of the first, and the distances in bytes.
struct Progression {
  BoxDim dim;
  long target, source;
};

std::vector<Progression> progressions_of(const Steps& steps) {
  const std::vector<long>&to = steps.target, &from = steps.source;
  std::vector<Progression> progressions;
  for (size_t first = 0; first < to.size();) {
    size_t end = first + 1;
    BoxDim dim;
    if (end < to.size() && to[end] > to[first] && from[end] > from[first]) {
      dim.to = to[end] - to[first], dim.from = from[end] - from[first];
      while (end < to.size() && to[end] - to[end - 1] == dim.to && from[end] - from[end - 1] == dim.from)
        ++end;
    }
    dim.count = static_cast<long>(end - first);
    progressions.push_back({dim, to[first], from[first]});
    first = end;
  }
  return progressions;
}

bool same_elements(const Owned& a, const Owned& b) {
  for (size_t d = 0; d < PWX_MAX_DIMS; ++d) {
    if (a.places[d].size() != b.places[d].size()) return false;
    if (!a.places[d].empty() && a.places[d].begin()->first != b.places[d].begin()->first) return false;
  }
  return true;
}

}  // namespace

std::vector<BlockPair> blocks_of(const Move& move, size_t dims, size_t element_bytes, long target_base,
                                 long source_base) {
  std::array<std::vector<Progression>, PWX_MAX_DIMS> parts;
  for (size_t d = 0; d < dims; ++d) parts[d] = progressions_of(move[d]);
  std::vector<BlockPair> blocks;
  std::array<size_t, PWX_MAX_DIMS> at{};
  for (;;) {
    long to = target_base, from = source_base;
    std::array<BoxDim, PWX_MAX_DIMS> box;
    for (size_t d = 0; d < dims; ++d) {
      const Progression& part = parts[d][at[d]];
      box[d] = part.dim, to += part.target, from += part.source;
    }
    const auto pairs = blocks_of(std::span(box).first(dims), static_cast<long>(element_bytes), to, from);
    blocks.insert(blocks.end(), pairs.begin(), pairs.end());
    size_t d = dims;
    while (d > 0 && ++at[d - 1] == parts[d - 1].size()) at[--d] = 0;
    if (d == 0) return blocks;
  }
}

std::byte* Side::memory() const {
  return static_cast<std::byte*>(distributed() ? section.array->state->memory.address() : section.base);
}

std::vector<int> Side::holders() const {
  if (distributed()) return ranks_of(*section.array->on->nodes);
  std::vector<int> ranks = program().executing().ranks;
  if (view != nullptr)
    std::erase_if(ranks,
                  [all = ranks_of(*view)](int rank) { return std::ranges::find(all, rank) == all.end(); });
  return ranks;
}

Assignment::Assignment(const pwx_section& to, const pwx_section& from)
    : target(side_of(to, "left")), source(side_of(from, "right")), element_bytes(target.element_bytes()) {
  check();
  target.view = own_nodes(source);
  source.view = own_nodes(target);
  dims = target.free_dims.size();
  broadcasts_one = source.free_dims.empty() && dims > 0;
}

void Assignment::check() const {
  if (source.element_bytes() != element_bytes)
    refuse("gmove: elements of ", element_bytes, " bytes at the left and of ", source.element_bytes(),
           " at the right; both sides must have one type");
  if (!source.free_dims.empty() && source.free_dims.size() != target.free_dims.size())
    refuse("gmove: a section of ", target.free_dims.size(), " dimensions at the left and of ",
           source.free_dims.size(), " at the right; they must be the same");
  for (size_t d = 0; d < source.free_dims.size(); ++d) {
    const long l = target.section.dim[target.free_dims[d]].count,
               r = source.section.dim[source.free_dims[d]].count;
    if (l != r)
      refuse("gmove: ", l, " elements at the left and ", r, " at the right in dimension ", d,
             " of the sections; they must be as many");
  }
}

/// The elements of a side that each rank owns. If `advice` is not null, all owners must execute the gmove:
/// else it throws Failure with this advice.
std::vector<Owned> Assignment::owned(const Side& side, const std::vector<int>& ranks, const char* advice) {
  const std::vector<int>& executing = program().executing().ranks;
  std::vector<Owned> all;
  for (size_t n = 0; n < ranks.size(); ++n) {
    all.push_back(owned_at(side, static_cast<int>(n)));
    if (advice != nullptr && all.back().owns_some &&
        std::ranges::find(executing, ranks[n]) == executing.end())
      refuse("gmove with elements of ", side.name(), " that node ", ranks[n] + 1,
             " owns, which does not execute it; ", advice);
  }
  return all;
}

void Assignment::check_views() const {
  for (const auto& [side, other] : {std::pair(&target, &source), std::pair(&source, &target)}) {
    const pwx_nodes* const nodes = other->view;
    if (nodes == nullptr || !other->distributed()) continue;
    const std::vector<int> view = ranks_of(*nodes), ranks = other->holders();
    const std::vector<Owned> all = owned(*other, ranks, nullptr);
    for (size_t n = 0; n < ranks.size(); ++n)
      if (all[n].owns_some && std::ranges::find(view, ranks[n]) == view.end())
        refuse("gmove of ", side->name(), ", which is on ", nodes->name, ", and ", other->name(),
               ", elements of which node ", ranks[n] + 1, " owns: that is none of this node's ", nodes->name,
               ", and other nodes have others by this name; use gmove in or out");
  }
}

/// The ranks that give `taker` its elements, one for each distinct part. Of replicas, which own the same
/// elements, it is the taker itself or else the first.
std::vector<size_t> Assignment::sources(int taker, const std::vector<int>& from,
                                        const std::vector<Owned>& givers) {
  std::vector<size_t> chosen;
  for (size_t g = 0; g < from.size(); ++g) {
    if (!givers[g].owns_some) continue;
    const auto same =
        std::ranges::find_if(chosen, [&](size_t other) { return same_elements(givers[g], givers[other]); });
    if (same == chosen.end())
      chosen.push_back(g);
    else if (from[g] == taker)
      *same = g;
  }
  return chosen;
}

/// Finds the wanted elements that the giver has; both ranks compute the same. False if there are none. A
/// scalar goes to all elements.
bool Assignment::meet(const Owned& wanted, const Owned& given, Move& move) const {
  if (!wanted.owns_some || !given.owns_some) return false;
  for (size_t d = 0; d < dims; ++d) {
    move[d] = {};
    auto giver = given.places[d].begin();
    const auto end = given.places[d].end();
    for (const auto& [k, offset] : wanted.places[d]) {
      while (!broadcasts_one && giver != end && giver->first < k) ++giver;
      if (!broadcasts_one && (giver == end || giver->first != k)) continue;
      move[d].target.push_back(offset);
      move[d].source.push_back(broadcasts_one ? 0 : giver->second);
    }
    if (move[d].target.empty()) return false;
  }
  return true;
}

size_t Assignment::elements(const Move& move) const {
  size_t count = 1;
  for (size_t d = 0; d < dims; ++d) count *= move[d].target.size();
  return count;
}

}  // namespace pwx
