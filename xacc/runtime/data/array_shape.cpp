#include "xacc/runtime/data/array_shape.h"

#include <algorithm>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

void check_dimension(const pwx_array& a, const ArrayDescription& wanted, int d) {
  const auto which = [&] {
    return text("dimension ", a.lower == nullptr ? d : wanted.ndims - d, " of ", wanted.name);
  };
  const bool full = wanted.shadow_lo[d] < 0;
  if (!full && wanted.shadow_hi[d] < 0) refuse("the shadow of ", which(), " is ", wanted.shadow_hi[d]);
  const int k = wanted.template_dim[d];
  if (k < 0) return;
  if (k >= wanted.t->ndims)
    refuse(which(), " is aligned with dimension ", a.lower == nullptr ? k : wanted.t->ndims - k,
           " of template ", wanted.t->name, ", which has ", wanted.t->ndims);
  const pwx_template_dim& t = wanted.t->dim[k];
  if (t.kind == PWX_CYCLIC && !full && (wanted.shadow_lo[d] > 0 || wanted.shadow_hi[d] > 0))
    refuse(which(), " has a shadow of ", wanted.shadow_lo[d], ":", wanted.shadow_hi[d],
           ", but is distributed cyclic; a shadow needs block or gblock");
  if (wanted.sizes == nullptr || wanted.sizes[d] == 0) return;
  const long first = wanted.offset[d], last = wanted.sizes[d] - 1 + wanted.offset[d];
  if (first < t.first || last > t.last)
    refuse(which(), " is aligned with indices ", first, " to ", last, " of template ", wanted.t->name,
           ", which has ", t.first, " to ", t.last, "; make the template larger or change the alignment");
}

/// The elements of a rank's memory that are the array's: a rank that owns less than others has unused memory.
long held_of(const pwx_array& a, int d, const Placed& placed) {
  const pwx_template_dim* t = template_dim(a, d);
  if (is_full(a.dim[d]) || t == nullptr || t->kind == PWX_CYCLIC) return placed.ld;
  const long own = placed.owned.count();
  return own == 0 ? 0 : own + a.dim[d].shadow[0] + a.dim[d].shadow[1];
}

bool same_template(const pwx_template& a, const pwx_template& b) {
  if (&a == &b) return true;
  if (a.ndims != b.ndims || !a.fixed || !b.fixed || a.nodes->total != b.nodes->total) return false;
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_template_dim &a_dim = a.dim[d], &other = b.dim[d];
    if (a_dim.kind != other.kind || a_dim.nodes_dim != other.nodes_dim || a_dim.parts != other.parts ||
        a_dim.first != other.first || a_dim.last != other.last || a_dim.width != other.width)
      return false;
    if (a_dim.kind == PWX_GBLOCK && !std::equal(a_dim.starts, a_dim.starts + a_dim.parts, other.starts))
      return false;
  }
  return std::equal(a.nodes->ranks, a.nodes->ranks + a.nodes->total, b.nodes->ranks);
}

}  // namespace

void describe(pwx_array& a, const ArrayDescription& wanted) {
  if (wanted.ndims < 1 || wanted.ndims > PWX_MAX_DIMS)
    refuse("array ", wanted.name, " has ", wanted.ndims, " dimensions; 1 to ", PWX_MAX_DIMS, " are possible");
  if (!wanted.t->fixed || !wanted.t->distributed)
    refuse("array ", wanted.name, " is aligned with template ", wanted.t->name, ", which is not ",
           wanted.t->fixed ? "distributed" : "fixed", " yet; do that before the array is allocated");
  a.name = wanted.name;
  a.element_bytes = wanted.element_bytes;
  a.ndims = wanted.ndims;
  a.on = wanted.t;
  for (int d = 0; d < a.ndims; ++d) {
    check_dimension(a, wanted, d);
    pwx_array_dim& dim = a.dim[d];
    dim.size = wanted.sizes == nullptr ? 0 : wanted.sizes[d];
    dim.template_dim = wanted.template_dim[d];
    dim.offset = dim.template_dim < 0 ? 0 : wanted.offset[d];
    const bool full = wanted.shadow_lo[d] < 0;
    dim.shadow[0] = full ? -1 : wanted.shadow_lo[d];
    dim.shadow[1] = full ? -1 : wanted.shadow_hi[d];
  }
}

uint64_t place_all(pwx_array& a) {
  uint64_t bytes = a.element_bytes;
  for (int d = 0; d < a.ndims; ++d) {
    pwx_array_dim& dim = a.dim[d];
    const pwx_template_dim* t = template_dim(a, d);
    const Placed placed = place(a, d, a.on->nodes->member == 0 ? -1 : t == nullptr ? 0 : t->at);
    dim.first = placed.owned.first;
    dim.last = placed.owned.last;
    dim.base = placed.base;
    a.ld[d] = dim.ld = placed.ld;
    dim.held = a.on->nodes->member != 0 ? held_of(a, d, placed) : 0;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim.ld), &bytes))
      refuse("array ", a.name, " is larger than any memory");
  }
  return bytes;
}

std::string difference(const pwx_array& a, const ArrayDescription& wanted) {
  if (a.element_bytes != wanted.element_bytes)
    return text("its elements have ", a.element_bytes, " bytes, not ", wanted.element_bytes);
  if (a.ndims != wanted.ndims) return text("it has ", a.ndims, " dimensions, not ", wanted.ndims);
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_array_dim& dim = a.dim[d];
    const auto which = [&](const char* quantity) {
      return text(quantity, " of dimension ", spoken_dimension(a, d), " is ");
    };
    const long lo = wanted.shadow_lo[d] < 0 ? -1 : wanted.shadow_lo[d];
    const long hi = wanted.shadow_lo[d] < 0 ? -1 : wanted.shadow_hi[d];
    if (wanted.sizes[d] > 0 && dim.size != wanted.sizes[d])
      return text(which("the size"), dim.size, ", not ", wanted.sizes[d]);
    if (dim.template_dim != wanted.template_dim[d])
      return text(which("the dimension of the template that it is aligned with, from 0, -1 for none,"),
                  dim.template_dim, ", not ", wanted.template_dim[d]);
    if (dim.template_dim >= 0 && dim.offset != wanted.offset[d])
      return text(which("the offset of the alignment"), dim.offset, ", not ", wanted.offset[d]);
    if (dim.shadow[0] != lo || dim.shadow[1] != hi)
      return text(which("the shadow"), dim.shadow[0], ":", dim.shadow[1], ", not ", lo, ":", hi);
  }
  if (!same_template(*a.on, *wanted.t))
    return text("it is aligned with template ", a.on->name, ", which differs");
  return {};
}

bool same_places(const pwx_array& a, const pwx_array& b) {
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_array_dim &a_dim = a.dim[d], &other = b.dim[d];
    if (a_dim.size != other.size || a_dim.ld != other.ld || a_dim.base != other.base ||
        a_dim.first != other.first || a_dim.last != other.last)
      return false;
  }
  return true;
}

std::array<Placed, PWX_MAX_DIMS> placed_at(const pwx_array& a, int number) {
  const auto at = coordinates_of(*a.on->nodes, number);
  const Parts parts = parts_at(a, at.data());
  std::array<Placed, PWX_MAX_DIMS> all;
  for (int d = 0; d < a.ndims; ++d) all[static_cast<size_t>(d)] = place(a, d, parts[static_cast<size_t>(d)]);
  return all;
}

Strides strides_at(const pwx_array& a, const std::array<Placed, PWX_MAX_DIMS>& placed) {
  std::array<long, PWX_MAX_DIMS> extents{};
  std::ranges::transform(placed, extents.begin(), &Placed::ld);
  return strides_of(a.ndims, extents.data(), a.element_bytes);
}

}  // namespace pwx
