// The assignment of a gmove, with its two sides: the elements that each rank owns, and those that one rank
// has of what another wants.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "peerway/xacc/runtime.h"
#include "xacc/runtime/mapping/halo_boxes.h"
#include "xacc/runtime/mapping/mapping.h"

namespace pwx {

/// One side of an assignment, as all ranks know it.
struct Side {
  const pwx_section& section;
  std::vector<int> free_dims;       ///< dimensions that are not an index
  const pwx_nodes* view = nullptr;  ///< the nodes of the other side, if other ranks may have other nodes by
                                    ///< that name

  [[nodiscard]] bool distributed() const { return section.array != nullptr; }
  [[nodiscard]] long extent(int d) const {
    return distributed() ? section.array->dim[d].size : section.extent[d];
  }
  [[nodiscard]] long spoken(int d, long subscript) const {
    return distributed() ? pwx::spoken(*section.array, d, subscript) : subscript;
  }
  [[nodiscard]] const char* name() const { return distributed() ? section.array->name : "a local array"; }
  [[nodiscard]] size_t element_bytes() const {
    return distributed() ? section.array->element_bytes : section.element_bytes;
  }
  /// This rank's memory.
  [[nodiscard]] std::byte* memory() const;
  /// The ranks that hold it, in the order of its nodes. A local array is held by all executing ranks, or by
  /// those of `view`.
  [[nodiscard]] std::vector<int> holders() const;
};

/// Numbers of elements in a section, ascending, each with its offset in bytes.
using Places = std::vector<std::pair<long, long>>;

/// The elements of a side that one rank owns, for each dimension of the section; none unless `owns_some`.
struct Owned {
  bool owns_some = true;
  long base = 0;                              ///< the offset that comes from the indices
  std::array<Places, PWX_MAX_DIMS> places{};  ///< of the free dimensions, in order
};

/// One dimension of what moves between two ranks: the offsets of each element at both ends, in bytes.
struct Steps {
  std::vector<long> target, source;
};
using Move = std::array<Steps, PWX_MAX_DIMS>;

/// The blocks that transfer a move of `dims` dimensions, in an order that is the same at both ends. Each
/// dimension is cut where the distance of its elements changes at one of the ends.
std::vector<BlockPair> blocks_of(const Move& move, size_t dims, size_t element_bytes, long target_base,
                                 long source_base);

/// The sides whose owners must all execute the gmove, and the advice if they do not.
struct MustExecute {
  bool target, source;
  const char* advice;
};

/// The sides of a gmove, after checking that they fit each other.
class Assignment {
 public:
  /// Throws Failure if the sections do not fit.
  Assignment(const pwx_section& to, const pwx_section& from);

  /// Throws Failure if messages would not match: the nodes of one side differ between ranks, and elements of
  /// the other side are outside this rank's nodes.
  void check_views() const;

  Side target, source;
  size_t element_bytes;
  size_t dims = 0;              ///< of the sections
  bool broadcasts_one = false;  ///< one element at the right goes to all at the left

  /// Calls `body(to, from, wanted, given, move)` for each pair of ranks between which elements move, if
  /// `relevant(to, from)`. Throws Failure if an owner that must execute does not.
  template <typename Relevant, typename Body>
  void each_pair(const MustExecute& must, Relevant&& relevant, Body&& body) const {
    const std::vector<int> to = target.holders(), from = source.holders();
    const std::vector<Owned> takers = owned(target, to, must.target ? must.advice : nullptr);
    const std::vector<Owned> givers = owned(source, from, must.source ? must.advice : nullptr);
    for (size_t n = 0; n < to.size(); ++n) {
      if (!takers[n].owns_some) continue;
      for (const size_t g : sources(to[n], from, givers)) {
        if (!relevant(to[n], from[g])) continue;
        Move move;
        if (meet(takers[n], givers[g], move)) body(to[n], from[g], takers[n], givers[g], move);
      }
    }
  }

  [[nodiscard]] size_t elements(const Move& move) const;

  /// Calls `body(target, source)` with the offsets of each element, in an order that is the same at both
  /// ends.
  template <typename Body>
  void each_element(const Move& move, long target_base, long source_base, Body&& body) const {
    std::array<size_t, PWX_MAX_DIMS> at{};
    for (;;) {
      long to = target_base, from = source_base;
      for (size_t d = 0; d < dims; ++d) {
        to += move[d].target[at[d]];
        from += move[d].source[at[d]];
      }
      body(to, from);
      size_t d = dims;
      while (d > 0 && ++at[d - 1] == move[d - 1].target.size()) at[--d] = 0;
      if (d == 0) return;
    }
  }

 private:
  static std::vector<Owned> owned(const Side& side, const std::vector<int>& ranks, const char* advice);
  static std::vector<size_t> sources(int taker, const std::vector<int>& from,
                                     const std::vector<Owned>& givers);
  bool meet(const Owned& wanted, const Owned& given, Move& move) const;
  void check() const;
};

}  // namespace pwx
