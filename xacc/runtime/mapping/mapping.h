// Which elements a node owns and where they lie in its memory: arithmetic that every rank can do for every
// other. Pure.
//
// A dimension of an array lies along one of the template, which is cut into parts; a node's part is its
// coordinate. Dimensions that are not distributed have one part.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Both included; empty where first > last.
struct Range {
  long first = 0;
  long last = -1;
  [[nodiscard]] long count() const { return last < first ? 0 : last - first + 1; }
  bool operator==(const Range&) const = default;
};

Range common(Range a, Range b);

inline long divide_up(long value, long by) { return (value + by - 1) / by; }

/// Fills what follows from kind, bounds, parts and width: of a block dimension the width, and what this rank,
/// `at`, owns. `asked_width`: 0 unless given. Throws Failure for a template that does not fit.
void settle(pwx_template_dim& dim, long asked_width, const std::string& named);

/// The part that owns a template index, which lies inside the bounds.
int owner_of(const pwx_template_dim& dim, long index);

/// The template indices that a part owns, as ascending ranges of template indices: one, but for cyclic.
std::vector<Range> owned_by(const pwx_template_dim& dim, int part);

/// A dimension of an array as it lies in the memory of one part.
struct Placed {
  Range owned;  ///< the first to the last; with gaps between where the dimension is cyclic
  long base = 0;
  long ld = 1;
};

/// The template's dimension that an array's lies along; null where it is not distributed.
inline const pwx_template_dim* template_dim(const pwx_array& a, int d) {
  return a.dim[d].template_dim < 0 ? nullptr : &a.on->dim[a.dim[d].template_dim];
}
inline int parts_of(const pwx_array& a, int d) {
  const pwx_template_dim* t = template_dim(a, d);
  return t == nullptr ? 1 : t->parts;
}
inline bool is_cyclic(const pwx_array& a, int d) {
  const pwx_template_dim* t = template_dim(a, d);
  return t != nullptr && t->kind == PWX_CYCLIC;
}
inline bool is_full(const pwx_array_dim& dim) { return dim.shadow[0] < 0; }

Placed place(const pwx_array& a, int d, int part);

/// Subscripts that a part owns, ascending.
std::vector<Range> owned_subscripts(const pwx_array& a, int d, int part);

/// The part that owns a subscript.
int owner_of_subscript(const pwx_array& a, int d, long subscript);

/// Where a subscript lies in the memory of a part that was placed so, in elements of this dimension.
long position(const pwx_array& a, int d, const Placed& placed, long subscript);

/// A part for each dimension of an array, as a node at these coordinates (from 0) has it.
using Parts = std::array<int, PWX_MAX_DIMS>;
Parts parts_at(const pwx_array& a, const int* coordinates);

/// Coordinates of the `number`-th of the nodes, and back.
std::array<int, PWX_MAX_DIMS> coordinates_of(const pwx_nodes& nodes, int number);
int number_of(const pwx_nodes& nodes, const int* coordinates);

/// Bytes from element to element in each dimension of memory with these extents, the last the fastest.
using Strides = std::array<long, PWX_MAX_DIMS>;
Strides strides_of(int ndims, const long* extents, size_t element_bytes);

}  // namespace pwx
