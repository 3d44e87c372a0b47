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
PWX_API int xmp_this_image_() { return xmpc_this_image() + 1; }
PWX_API int xmp_num_images_() { return xmpc_num_images(); }
PWX_API double xmp_wtime_() { return xmp_wtime(); }
PWX_API double xmp_wtick_() { return xmp_wtick(); }
PWX_API void xmp_barrier_() { xmp_barrier(); }
PWX_API void xmp_exit_(const int* status) { xmp_exit(*status); }

}  // extern "C"
