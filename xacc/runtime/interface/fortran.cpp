// What Fortran calls by reference: the functions of XcalableMP under the names that gfortran gives them, and
// the bounds of loops that generated Fortran does not compute itself.
#include <cstdint>

#include "peerway/xacc/loops.h"
#define _XCALABLEMP 201411  // NOLINT(bugprone-reserved-identifier): as `peerway fc` defines it
#pragma GCC visibility push(default)
#include "peerway/xacc/xmp.h"
#pragma GCC visibility pop

extern "C" {

// ---- loops ----

/// The first value of a loop `do i = first, …, step` that is in `lower` to `upper`, which it owns.
PWX_API int64_t pwx_f_first(const int64_t* first, const int64_t* step, const int64_t* own) {
  const pwx_span span = {own[0], own[1]};
  return *step >= 0 ? pwx_first(span, *first, *step) : pwx_first_down(span, *first, -*step);
}
/// Its last value.
PWX_API int64_t pwx_f_until(const int64_t* last, const int64_t* step, const int64_t* own) {
  const pwx_span span = {own[0], own[1]};
  return *step >= 0 ? pwx_up_to(span, *last) : pwx_down_to(span, *last);
}
/// How many values below `end` a node owns of those that `cycle` deals out.
PWX_API int64_t pwx_f_dealt(const int64_t* cycle, const int64_t* end) {
  const pwx_cycle dealt = {cycle[0], cycle[1], cycle[2], cycle[3], cycle[4]};
  return pwx_before(dealt, *end);
}

// ---- the functions of xmp_lib ----

PWX_API int xmp_node_num_() { return xmp_node_num(); }
PWX_API int xmp_num_nodes_() { return xmp_num_nodes(); }
PWX_API int xmp_all_node_num_() { return xmp_all_node_num(); }
PWX_API int xmp_all_num_nodes_() { return xmp_all_num_nodes(); }
PWX_API double xmp_wtime_() { return xmp_wtime(); }
PWX_API double xmp_wtick_() { return xmp_wtick(); }
PWX_API void xmp_barrier_() { xmp_barrier(); }
PWX_API void xmp_exit_(const int* status) { xmp_exit(*status); }

PWX_API int xmp_array_ndims_(xmp_desc_t* a, int* ndims) { return xmp_array_ndims(*a, ndims); }
PWX_API int xmp_template_fixed_(xmp_desc_t* t, int* fixed) { return xmp_template_fixed(*t, fixed); }
PWX_API int xmp_template_ndims_(xmp_desc_t* t, int* ndims) { return xmp_template_ndims(*t, ndims); }
PWX_API int xmp_nodes_ndims_(xmp_desc_t* p, int* ndims) { return xmp_nodes_ndims(*p, ndims); }
PWX_API int xmp_nodes_index_(xmp_desc_t* p, int* dim, int* index) { return xmp_nodes_index(*p, *dim, index); }
PWX_API int xmp_nodes_size_(xmp_desc_t* p, int* dim, int* size) { return xmp_nodes_size(*p, *dim, size); }
PWX_API int xmp_template_lbound_(xmp_desc_t* t, int* dim, int* bound) {
  return xmp_template_lbound(*t, *dim, bound);
}
PWX_API int xmp_template_ubound_(xmp_desc_t* t, int* dim, int* bound) {
  return xmp_template_ubound(*t, *dim, bound);
}
PWX_API int xmp_dist_format_(xmp_desc_t* t, int* dim, int* format) {
  return xmp_dist_format(*t, *dim, format);
}
PWX_API int xmp_dist_blocksize_(xmp_desc_t* t, int* dim, int* size) {
  return xmp_dist_blocksize(*t, *dim, size);
}
PWX_API int xmp_dist_axis_(xmp_desc_t* t, int* dim, int* axis) { return xmp_dist_axis(*t, *dim, axis); }

}  // extern "C"
