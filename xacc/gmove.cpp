// gmove: elements that go from the node that has them to those that want them, packed in messages.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "xacc/arrays.h"
#include "xacc/failure.h"
#include "xacc/program.h"

namespace pwx {
namespace {

/// One dimension of what moves between two ranks: where each element lies at both ends, in bytes.
struct Steps {
  std::vector<long> left, right;
};
using Move = std::array<Steps, PWX_MAX_DIMS>;

/// One side of an assignment as all ranks know it.
struct Side {
  const pwx_section& section;
  std::vector<int> free_dims;  ///< those that are no index

  [[nodiscard]] bool distributed() const { return section.array != nullptr; }
  [[nodiscard]] long extent(int d) const {
    return distributed() ? section.array->dim[d].size : section.extent[d];
  }
  [[nodiscard]] const char* name() const { return distributed() ? section.array->name : "a local array"; }
  [[nodiscard]] size_t element_bytes() const {
    return distributed() ? section.array->element_bytes : section.element_bytes;
  }
};

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
      refuse("gmove: subscripts ", t.first, " to ", last, " in dimension ", d + 1, " of ", side.name(),
             " at the ", which, ", which has 0 to ", side.extent(d) - 1);
    if (t.is_index == 0) side.free_dims.push_back(d);
  }
  return side;
}

/// Places in a section, ascending, and where each lies.
using Places = std::vector<std::pair<long, long>>;

/// Which elements of a section's dimension, by their places in it, a part owns, and where they lie there.
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

/// What one rank owns of one side, in each dimension of the section; nothing where `any` is false.
struct Owned {
  bool any = true;
  long base = 0;                              ///< of the indices
  std::array<Places, PWX_MAX_DIMS> places{};  ///< of the free dimensions, in order
};

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
    if (places.empty()) owned.any = false;
    if (side.section.dim[d].is_index != 0)
      owned.base += places.empty() ? 0 : places.begin()->second;
    else
      owned.places[free++] = std::move(places);
  }
  return owned;
}

/// What `right` can give `left`, as both compute it. False where it is nothing. A scalar goes everywhere.
bool meet(const Owned& left, const Owned& right, size_t dims, bool scalar, Move& move) {
  if (!left.any || !right.any) return false;
  for (size_t d = 0; d < dims; ++d) {
    move[d] = {};
    auto found = right.places[d].begin();
    const auto end = right.places[d].end();
    for (const auto& [k, offset] : left.places[d]) {
      while (!scalar && found != end && found->first < k) ++found;
      if (!scalar && (found == end || found->first != k)) continue;
      move[d].left.push_back(offset);
      move[d].right.push_back(scalar ? 0 : found->second);
    }
    if (move[d].left.empty()) return false;
  }
  return true;
}

/// Calls `body(left, right)` with the offsets of each element, in an order that both ends share.
template <typename Body>
void each_element(const Move& move, size_t dims, long left, long right, Body&& body) {
  std::array<size_t, PWX_MAX_DIMS> at{};
  for (;;) {
    long to = left, from = right;
    for (size_t d = 0; d < dims; ++d) {
      to += move[d].left[at[d]];
      from += move[d].right[at[d]];
    }
    body(to, from);
    size_t d = dims;
    while (d > 0 && ++at[d - 1] == move[d - 1].left.size()) at[--d] = 0;
    if (d == 0) return;
  }
}

size_t elements(const Move& move, size_t dims) {
  size_t count = 1;
  for (size_t d = 0; d < dims; ++d) count *= move[d].left.size();
  return count;
}

/// The ranks that hold a side, with their numbers among its nodes. Of a local one all executing ranks.
std::vector<int> holders(const Side& side) {
  if (!side.distributed()) return program().executing().ranks;
  const pwx_nodes& nodes = *side.section.array->on->nodes;
  return {nodes.ranks, nodes.ranks + nodes.total};
}

std::byte* memory_of(const Side& side) {
  return static_cast<std::byte*>(side.distributed() ? side.section.array->state->memory.address()
                                                    : side.section.base);
}

class Gmove {
 public:
  Gmove(const pwx_section& left, const pwx_section& right)
      : left_(side_of(left, "left")), right_(side_of(right, "right")), bytes_(left_.element_bytes()) {
    check();
    dims_ = left_.free_dims.size();
    scalar_ = right_.free_dims.empty() && dims_ > 0;
  }

  void run() {
    const std::vector<int> to = holders(left_), from = holders(right_);
    const int me = program().rank();
    std::vector<Owned> givers;
    for (size_t n = 0; n < from.size(); ++n) givers.push_back(owned_at(right_, static_cast<int>(n)));
    for (size_t n = 0; n < to.size(); ++n) {
      const Owned wanted = owned_at(left_, static_cast<int>(n));
      if (!wanted.any) continue;
      for (size_t g : sources(to[n], from, givers)) {
        if (to[n] != me && from[g] != me) continue;
        Move move;
        if (meet(wanted, givers[g], dims_, scalar_, move)) add(to[n], from[g], wanted, givers[g], move);
      }
    }
    deliver();
  }

 private:
  struct Packed {
    int rank;
    std::vector<std::byte> data;
    std::vector<long> to;  ///< of an incoming one, where each element goes
  };

  void check() const {
    if (right_.element_bytes() != bytes_)
      refuse("gmove: elements of ", bytes_, " bytes at the left and of ", right_.element_bytes(),
             " at the right; both sides must have one type");
    if (!right_.free_dims.empty() && right_.free_dims.size() != left_.free_dims.size())
      refuse("gmove: a section of ", left_.free_dims.size(), " dimensions at the left and of ",
             right_.free_dims.size(), " at the right; they must be the same");
    for (size_t d = 0; d < right_.free_dims.size(); ++d) {
      const long l = left_.section.dim[left_.free_dims[d]].count,
                 r = right_.section.dim[right_.free_dims[d]].count;
      if (l != r)
        refuse("gmove: ", l, " elements at the left and ", r, " at the right in dimension ", d + 1,
               " of the sections; they must be as many");
    }
    for (const Side* side : {&left_, &right_})
      for (const int rank : holders(*side))
        if (std::ranges::find(program().executing().ranks, rank) == program().executing().ranks.end())
          refuse("gmove with ", side->name(),
                 " in a task that not all its nodes execute; do it outside of the task");
  }

  /// Who gives `taker` what it wants: those that own different elements. Of nodes that own the same
  /// (replicas) the taker itself, else the first.
  std::vector<size_t> sources(int taker, const std::vector<int>& from,
                              const std::vector<Owned>& givers) const {
    std::vector<size_t> chosen;
    for (size_t g = 0; g < from.size(); ++g) {
      if (!givers[g].any) continue;
      const auto same =
          std::ranges::find_if(chosen, [&](size_t other) { return same_elements(givers[g], givers[other]); });
      if (same == chosen.end())
        chosen.push_back(g);
      else if (from[g] == taker)
        *same = g;
    }
    return chosen;
  }

  static bool same_elements(const Owned& a, const Owned& b) {
    for (size_t d = 0; d < PWX_MAX_DIMS; ++d) {
      if (a.places[d].size() != b.places[d].size()) return false;
      if (!a.places[d].empty() && a.places[d].begin()->first != b.places[d].begin()->first) return false;
    }
    return true;
  }

  void add(int to, int from, const Owned& left, const Owned& right, const Move& move) {
    const int me = program().rank();
    const std::byte* out_of = memory_of(right_);
    const size_t count = elements(move, dims_);
    if (from == me) {
      auto& packed =
          (to == me ? own_ : out_).emplace_back(Packed{to, std::vector<std::byte>(count * bytes_), {}});
      std::byte* next = packed.data.data();
      each_element(move, dims_, left.base, right.base, [&](long, long source) {
        std::memcpy(next, out_of + source, bytes_);
        next += bytes_;
      });
    }
    if (to != me) return;
    auto& packed =
        from == me ? own_.back() : in_.emplace_back(Packed{from, std::vector<std::byte>(count * bytes_), {}});
    packed.to.reserve(count);
    each_element(move, dims_, left.base, right.base, [&](long target, long) { packed.to.push_back(target); });
  }

  /// Nothing is stored before all that leaves is packed: the two sides may overlap.
  void deliver() {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (const Packed& one : out_) out.push_back({one.rank, one.data.data(), one.data.size()});
    for (Packed& one : in_) in.push_back({one.rank, one.data.data(), one.data.size()});
    program().mail.exchange(out, in);
    std::byte* into = memory_of(left_);
    for (const auto* list : {&own_, &in_})
      for (const Packed& one : *list)
        for (size_t i = 0; i < one.to.size(); ++i)
          std::memcpy(into + one.to[i], one.data.data() + i * bytes_, bytes_);
  }

  Side left_, right_;
  size_t bytes_;
  size_t dims_ = 0;
  bool scalar_ = false;
  std::vector<Packed> own_, out_, in_;
};

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_gmove(pwx_gmove_mode /*mode*/, const pwx_section* left, const pwx_section* right,
               const pwx_where* where) {
  // In and out differ from a collective one only in who has to take part: all do, who execute.
  if (left->array != nullptr) pwx_written(left->array);
  pwx::guarded(where, [&] { pwx::Gmove(*left, *right).run(); });
}

}  // extern "C"
