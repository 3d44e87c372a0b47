// The inquiry functions of XcalableMP for Fortran: they count the dimensions and subscripts of arrays as the
// program does, and logicals have 4 bytes. `peerway fc` calls them in place of those that a program names.
#include <array>
#include <cstdint>

#include "peerway/xacc/runtime.h"
#define _XCALABLEMP 201411  // NOLINT(bugprone-reserved-identifier): as `peerway fc` defines it
#pragma GCC visibility push(default)
#include "peerway/xacc/xmp.h"
#pragma GCC visibility pop

namespace pwx {
namespace {

using DimensionInquiry = int (*)(xmp_desc_t, int, int*);

const pwx_array& fortran_array(xmp_desc_t array) { return *static_cast<const pwx_array*>(array); }

/// The number by which C counts a dimension of an array; it has none for one that does not exist.
int dimension_in_c(xmp_desc_t array, int dim) { return fortran_array(array).ndims + 1 - dim; }

/// The lower bound of a dimension that exists.
int lower_bound(xmp_desc_t array, int dim) {
  const pwx_array& a = fortran_array(array);
  return a.lower == nullptr ? 1 : static_cast<int>(a.lower[a.ndims - dim]);
}

int ask(DimensionInquiry inquiry, xmp_desc_t array, int dim, int* value) {
  return inquiry(array, dimension_in_c(array, dim), value);
}

/// A subscript, which C counts from 0.
int ask_subscript(DimensionInquiry inquiry, xmp_desc_t array, int dim, int* value) {
  const int status = ask(inquiry, array, dim, value);
  if (status == 0) *value += lower_bound(array, dim);
  return status;
}

}  // namespace
}  // namespace pwx

using pwx::ask;
using pwx::ask_subscript;
using pwx::lower_bound;

extern "C" {

// ---- nodes ----

PWX_API int pwx_f_nodes_ndims_(xmp_desc_t* d, int* ndims) { return xmp_nodes_ndims(*d, ndims); }
PWX_API int pwx_f_nodes_index_(xmp_desc_t* d, const int* dim, int* at) {
  return xmp_nodes_index(*d, *dim, at);
}
PWX_API int pwx_f_nodes_size_(xmp_desc_t* d, const int* dim, int* size) {
  return xmp_nodes_size(*d, *dim, size);
}

// ---- templates ----

PWX_API int pwx_f_template_fixed_(xmp_desc_t* d, int* fixed) { return xmp_template_fixed(*d, fixed); }
PWX_API int pwx_f_template_ndims_(xmp_desc_t* d, int* ndims) { return xmp_template_ndims(*d, ndims); }
PWX_API int pwx_f_template_lbound_(xmp_desc_t* d, const int* dim, int* bound) {
  return xmp_template_lbound(*d, *dim, bound);
}
PWX_API int pwx_f_template_ubound_(xmp_desc_t* d, const int* dim, int* bound) {
  return xmp_template_ubound(*d, *dim, bound);
}
PWX_API int pwx_f_dist_format_(xmp_desc_t* d, const int* dim, int* format) {
  return xmp_dist_format(*d, *dim, format);
}
PWX_API int pwx_f_dist_blocksize_(xmp_desc_t* d, const int* dim, int* size) {
  return xmp_dist_blocksize(*d, *dim, size);
}
PWX_API int pwx_f_dist_gblockmap_(xmp_desc_t* d, const int* dim, int* map) {
  return xmp_dist_gblockmap(*d, *dim, map);
}
PWX_API int pwx_f_dist_axis_(xmp_desc_t* d, const int* dim, int* axis) {
  return xmp_dist_axis(*d, *dim, axis);
}
PWX_API int pwx_f_dist_nodes_(xmp_desc_t* d, xmp_desc_t* nodes) { return xmp_dist_nodes(*d, nodes); }

// ---- arrays ----

PWX_API int pwx_f_align_axis_(xmp_desc_t* d, const int* dim, int* axis) {
  return ask(xmp_align_axis, *d, *dim, axis);
}
PWX_API int pwx_f_align_offset_(xmp_desc_t* d, const int* dim, int* offset) {
  const int status = ask(xmp_align_offset, *d, *dim, offset);
  if (status == 0) *offset -= lower_bound(*d, *dim);
  return status;
}
/// `dim` is one of the template's.
PWX_API int pwx_f_align_replicated_(xmp_desc_t* d, const int* dim, int* replicated) {
  return xmp_align_replicated(*d, *dim, replicated);
}
PWX_API int pwx_f_align_template_(xmp_desc_t* d, xmp_desc_t* t) { return xmp_align_template(*d, t); }
PWX_API int pwx_f_array_ndims_(xmp_desc_t* d, int* ndims) { return xmp_array_ndims(*d, ndims); }
PWX_API int pwx_f_array_lbound_(xmp_desc_t* d, const int* dim, int* bound) {
  return ask_subscript(xmp_array_gcglbound, *d, *dim, bound);
}
PWX_API int pwx_f_array_ubound_(xmp_desc_t* d, const int* dim, int* bound) {
  return ask_subscript(xmp_array_gcgubound, *d, *dim, bound);
}
PWX_API int pwx_f_array_gcllbound_(xmp_desc_t* d, const int* dim, int* bound) {
  return ask_subscript(xmp_array_gcllbound, *d, *dim, bound);
}
PWX_API int pwx_f_array_gclubound_(xmp_desc_t* d, const int* dim, int* bound) {
  return ask_subscript(xmp_array_gclubound, *d, *dim, bound);
}
PWX_API int pwx_f_array_gsize_(xmp_desc_t* d, const int* dim, int* size) {
  return ask(xmp_array_gsize, *d, *dim, size);
}
PWX_API int pwx_f_array_lsize_(xmp_desc_t* d, const int* dim, int* size) {
  return ask(xmp_array_lsize, *d, *dim, size);
}
PWX_API int pwx_f_array_lshadow_(xmp_desc_t* d, const int* dim, int* layers) {
  return ask(xmp_array_lshadow, *d, *dim, layers);
}
PWX_API int pwx_f_array_ushadow_(xmp_desc_t* d, const int* dim, int* layers) {
  return ask(xmp_array_ushadow, *d, *dim, layers);
}
/// The place, from 0, that an element has in a dimension of its owner's memory.
PWX_API int pwx_f_array_gtol_(xmp_desc_t* d, const int* dim, const int* global, int* local) {
  const int ndims = pwx::fortran_array(*d).ndims;
  if (*dim < 1 || *dim > ndims) return -1;
  std::array<int, PWX_MAX_DIMS> subscripts{}, places{};
  const auto at = static_cast<size_t>(ndims - *dim);
  subscripts[at] = *global - lower_bound(*d, *dim);
  const int status = xmp_array_gtol(*d, subscripts.data(), places.data());
  *local = places[at];
  return status;
}

}  // extern "C"
