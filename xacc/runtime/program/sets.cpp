#include "xacc/runtime/program/sets.h"

#include <algorithm>
#include <array>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"

namespace pwx {
namespace {

std::string text_of_sub(const pwx_sub& sub) {
  if (sub.kind == PWX_ALL) return ":";
  if (sub.kind == PWX_MINE) return "*";
  if (sub.first == sub.last) return text(sub.first);
  return sub.step == 1 ? text(sub.first, ":", sub.last) : text(sub.first, ":", sub.last, ":", sub.step);
}

/// The coordinates, of `size` in a dimension, that a subscript names; `mine` is this rank's.
std::vector<int> chosen_of(const pwx_ref& ref, const pwx_sub& sub, int size, int mine) {
  std::vector<int> chosen;
  if (sub.kind == PWX_ALL) {
    for (int c = 0; c < size; ++c) chosen.push_back(c);
  } else if (sub.kind == PWX_MINE) {
    if (mine >= 0) chosen.push_back(mine);
  } else {
    if (sub.step == 0) refuse(text_of(ref), " has a step of 0");
    for (long c = sub.first; sub.step > 0 ? c <= sub.last : c >= sub.last; c += sub.step) {
      if (c < 1 || c > size)
        refuse(text_of(ref), " names node ", c, " of ", nodes_of(ref).name, ", which has nodes 1 to ", size,
               " there");
      chosen.push_back(static_cast<int>(c) - 1);
    }
  }
  return chosen;
}

/// The coordinates, in one dimension, of the nodes that own a part of what a template's subscript names.
std::vector<int> owners_of(const pwx_ref& ref, int d, int mine) {
  const pwx_template_dim& dim = ref.on_template->dim[d];
  const pwx_sub& sub = ref.sub[d];
  if (sub.kind == PWX_MINE) return mine >= 0 ? std::vector{mine} : std::vector<int>{};
  Range range{dim.first, dim.last};
  long step = 1;
  if (sub.kind == PWX_RANGE) {
    range = {sub.first, sub.last};
    step = sub.step;
    if (step == 0) refuse(text_of(ref), " has a step of 0");
    if (step < 0) {
      std::swap(range.first, range.last);
      step = -step;
    }
    if (range.count() > 0 && (range.first < dim.first || range.last > dim.last))
      refuse(text_of(ref), " leaves ", ref.on_template->name, ", which has indices ", dim.first, " to ",
             dim.last, " there");
  }
  std::vector<int> owners;
  for (int part = 0; part < dim.parts; ++part)
    for (const Range& owned : owned_by(dim, part)) {
      const Range both = common(owned, range);
      const long first = range.first + divide_up(std::max(both.first - range.first, 0L), step) * step;
      if (both.count() > 0 && first <= both.last) {
        owners.push_back(part);
        break;
      }
    }
  return owners;
}

template <typename Value>
void append_bytes(std::string& key, const Value& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A key that is equal for references to nodes that name the same ranks.
std::string key_of(const pwx_ref& ref) {
  std::string key;
  append_bytes(key, ref.nodes->ranks);  // each list of ranks exists once
  for (int d = 0; d < ref.nodes->ndims; ++d) {
    append_bytes(key, ref.nodes->size[d]);
    append_bytes(key, ref.sub[d].kind);
    if (ref.sub[d].kind != PWX_RANGE) continue;
    append_bytes(key, ref.sub[d].first);
    append_bytes(key, ref.sub[d].last);
    append_bytes(key, ref.sub[d].step);
  }
  return key;
}

}  // namespace

const pwx_nodes& nodes_of(const pwx_ref& ref) {
  return ref.nodes != nullptr ? *ref.nodes : *ref.on_template->nodes;
}

std::string text_of(const pwx_ref& ref) {
  const int ndims = ref.nodes != nullptr ? ref.nodes->ndims : ref.on_template->ndims;
  std::string all = text(ref.nodes != nullptr ? ref.nodes->name : ref.on_template->name, "(");
  for (int d = 0; d < ndims; ++d) all += (d > 0 ? "," : "") + text_of_sub(ref.sub[d]);
  return all + ")";
}

std::vector<int> numbers_of(const pwx_ref& ref) {
  if (ref.nodes == nullptr && (!ref.on_template->fixed || !ref.on_template->distributed))
    refuse(text_of(ref), ": the template ", ref.on_template->name, " is not ",
           ref.on_template->fixed ? "distributed" : "fixed", " yet; do that first");
  const pwx_nodes& nodes = nodes_of(ref);
  if (nodes.total == 0) return {};  // these nodes are made of nodes that do not include this rank
  std::array<std::vector<int>, PWX_MAX_DIMS> chosen;
  for (int d = 0; d < nodes.ndims; ++d) {
    auto& list = chosen[static_cast<size_t>(d)];
    if (ref.nodes != nullptr) {
      list = chosen_of(ref, ref.sub[d], nodes.size[d], nodes.at[d]);
    } else {
      // If no dimension of the template is distributed over a dimension of the nodes, all coordinates own it.
      for (int c = 0; c < nodes.size[d]; ++c) list.push_back(c);
      for (int t = 0; t < ref.on_template->ndims; ++t)
        if (ref.on_template->dim[t].nodes_dim == d) list = owners_of(ref, t, nodes.at[d]);
    }
    if (list.empty()) return {};
  }
  std::vector<int> numbers;
  std::array<size_t, PWX_MAX_DIMS> at{};
  std::array<int, PWX_MAX_DIMS> coordinates{};
  for (;;) {
    for (size_t d = 0; d < static_cast<size_t>(nodes.ndims); ++d) coordinates[d] = chosen[d][at[d]];
    numbers.push_back(number_of(nodes, coordinates.data()));
    size_t d = 0;
    while (d < static_cast<size_t>(nodes.ndims) && ++at[d] == chosen[d].size()) at[d++] = 0;
    if (d == static_cast<size_t>(nodes.ndims)) break;
  }
  return numbers;
}

const Set& Sets::of(const std::vector<int>& ranks) {
  std::unique_ptr<Set>& set = sets_[ranks];
  if (set == nullptr) {
    const auto mine = std::ranges::find(ranks, rank_);
    set =
        std::make_unique<Set>(Set{ranks, mine == ranks.end() ? -1 : static_cast<int>(mine - ranks.begin())});
  }
  return *set;
}

const Set& Sets::of(const pwx_ref& ref) {
  // A template may be fixed again, so its owners are computed each time. The nodes of a function may be at
  // the address of earlier ones, so the key has their contents, not their address.
  const bool keeps = ref.nodes != nullptr;
  const std::string key = keeps ? key_of(ref) : std::string();
  if (keeps)
    if (const auto known = of_refs_.find(key); known != of_refs_.end()) return *known->second;
  std::vector<int> ranks;
  for (const int number : numbers_of(ref)) ranks.push_back(nodes_of(ref).ranks[number]);
  const Set& set = of(ranks);
  if (keeps) of_refs_[key] = &set;
  return set;
}

}  // namespace pwx
