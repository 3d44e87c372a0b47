// Computes which elements a node owns and where they are in its memory; every rank can do so for every other.
// Pure functions.
//
// A dimension of an array is aligned with one of the template, which is divided into parts; a node's part is
// its coordinate. Undistributed dimensions have one part.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Both ends are included; empty if first > last.
struct Range {
  long first = 0;
  long last = -1;
  [[nodiscard]] long count() const { return last < first ? 0 : last - first + 1; }
  bool operator==(const Range&) const = default;
};

Range common(Range a, Range b);

inline long divide_up(long value, long by) { return (value + by - 1) / by; }

/// Computes what follows from kind, bounds, parts and width: the width of a block dimension, and what this
/// rank, `at`, owns. `asked_width` is 0 unless given. Throws Failure if the template does not fit.
void settle(pwx_template_dim& dim, long asked_width, const std::string& named);

/// The part that owns a template index, which must be inside the bounds.
int owner_of(const pwx_template_dim& dim, long index);

/// The template indices that a part owns, as ascending ranges: one range, or several if cyclic.
std::vector<Range> owned_by(const pwx_template_dim& dim, int part);

/// The layout of an array's dimension in the memory of one part.
struct Placed {
  Range owned;  ///< first to last owned element; if cyclic, with gaps
  long base = 0;
  long ld = 1;
};

/// The template's dimension that an array's dimension is aligned with; null if it is not distributed.
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
/// How the program's language counts a dimension and a subscript of an array: in Fortran dimensions go the
/// other way, from 1, and subscripts begin at the array's bounds.
inline int spoken_dimension(const pwx_array& a, int d) { return a.lower == nullptr ? d : a.ndims - d; }
inline long spoken(const pwx_array& a, int d, long subscript) {
  return a.lower == nullptr ? subscript : subscript + a.lower[d];
}
inline bool is_full(const pwx_array_dim& dim) { return dim.shadow[0] < 0; }

Placed place(const pwx_array& a, int d, int part);

/// The subscripts that a part owns, as ascending ranges.
std::vector<Range> owned_subscripts(const pwx_array& a, int d, int part);

/// The part that owns a subscript.
int owner_of_subscript(const pwx_array& a, int d, long subscript);

/// The place of a subscript in the memory of a part with this layout, in elements of this dimension.
long position(const pwx_array& a, int d, const Placed& placed, long subscript);

/// The part of each dimension of an array for a node at these coordinates (from 0).
using Parts = std::array<int, PWX_MAX_DIMS>;
Parts parts_at(const pwx_array& a, const int* coordinates);

/// The coordinates of node number `number`, and back.
std::array<int, PWX_MAX_DIMS> coordinates_of(const pwx_nodes& nodes, int number);
int number_of(const pwx_nodes& nodes, const int* coordinates);

/// The distance in bytes between elements in each dimension of memory with these extents; the last varies
/// fastest.
using Strides = std::array<long, PWX_MAX_DIMS>;
Strides strides_of(int ndims, const long* extents, size_t element_bytes);

}  // namespace pwx
