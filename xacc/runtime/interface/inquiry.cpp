// The functions of xmp.h.
#define _XCALABLEMP 201411  // NOLINT(bugprone-reserved-identifier): as `peerway cc` defines it
#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdlib>

#pragma GCC visibility push(default)
#include "peerway/xacc/xmp.h"
#pragma GCC visibility pop
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/collective.h"

namespace pwx {
namespace {

const pwx_where kXmp{"xmp", 0};

const pwx_array& array_of(xmp_desc_t desc) { return *static_cast<const pwx_array*>(desc); }
const pwx_template& template_of(xmp_desc_t desc) { return *static_cast<const pwx_template*>(desc); }
const pwx_nodes& nodes_at(xmp_desc_t desc) { return *static_cast<const pwx_nodes*>(desc); }

/// Writes `value()` if the dimension exists, and returns 0 or -1.
template <typename Value>
int answer(int dim, int ndims, int* to, Value&& value) {
  if (dim < 1 || dim > ndims) return -1;
  *to = static_cast<int>(value(dim - 1));
  return 0;
}
template <typename Value>
int of_array(xmp_desc_t desc, int dim, int* to, Value&& value) {
  const pwx_array& a = array_of(desc);
  return answer(dim, a.ndims, to, [&](int d) { return value(a, d); });
}
template <typename Value>
int of_template(xmp_desc_t desc, int dim, int* to, Value&& value) {
  const pwx_template& t = template_of(desc);
  return answer(dim, t.ndims, to, [&](int d) { return value(t.dim[d]); });
}

std::vector<Range> mine(const pwx_array& a, int d) {
  const pwx_template_dim* t = template_dim(a, d);
  const int part = t == nullptr ? 0 : t->at;
  return part < 0 ? std::vector<Range>{} : owned_subscripts(a, d, part);
}
/// The first and last subscript that this node owns; an empty range if it owns nothing.
Range bounds(const pwx_array& a, int d) {
  const auto ranges = mine(a, d);
  return ranges.empty() ? Range{} : Range{ranges.front().first, ranges.back().last};
}
long local(const pwx_array& a, int d, long subscript) {
  const pwx_array_dim& dim = a.dim[d];
  return position(a, d, {{dim.first, dim.last}, dim.base, dim.ld}, subscript);
}

void done(int* status) {
  if (status != nullptr) *status = 0;
}

}  // namespace
}  // namespace pwx

using namespace pwx;  // NOLINT(google-build-using-namespace): all below is C

extern "C" {

int xmp_node_num() {
  return guarded(&kXmp, [] { return program().executing().index + 1; });
}
int xmp_num_nodes() {
  return guarded(&kXmp, [] { return program().executing().size(); });
}
int xmp_all_node_num() {
  return guarded(&kXmp, [] { return program().rank() + 1; });
}
int xmp_all_num_nodes() {
  return guarded(&kXmp, [] { return program().size(); });
}
int xmpc_node_num() { return xmp_node_num() - 1; }
int xmpc_all_node_num() { return xmp_all_node_num() - 1; }
// The images are the nodes that execute.
int xmpc_this_image() { return xmp_node_num() - 1; }
int xmpc_num_images() { return xmp_num_nodes(); }
int xmp_num_images() { return xmp_num_nodes(); }

double xmp_wtime() {
  pwx::guarded(&kXmp, [] { pwx::wait_for_unqueued(); });  // the program's earlier work must be done
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double xmp_wtick() {
  using Period = std::chrono::steady_clock::period;
  return static_cast<double>(Period::num) / static_cast<double>(Period::den);
}
void xmp_barrier() { pwx_barrier(nullptr, &kXmp); }
void xmp_exit(int status) { std::exit(status); }

void xmp_sync_all(int* status) {
  pwx_sync_all(&kXmp);
  done(status);
}
void xmp_sync_memory(int* status) {
  pwx_sync_memory(&kXmp);
  done(status);
}
void xmp_sync_image(int image, int* status) {
  pwx_sync_image(image, &kXmp);
  done(status);
}
void xmp_sync_images(int count, int* images, int* status) {
  pwx_sync_images(count, images, &kXmp);
  done(status);
}

void* xmp_malloc(xmp_desc_t array, ...) {
  auto* a = static_cast<pwx_array*>(array);
  long sizes[PWX_MAX_DIMS];
  va_list values;
  va_start(values, array);
  for (int d = 0; d < a->ndims; ++d) sizes[d] = va_arg(values, int);
  va_end(values);
  return pwx_array_allocate(a, sizes, &kXmp);
}
void xmp_free(xmp_desc_t array) { pwx_array_free(static_cast<pwx_array*>(array)); }

int xmp_array_ndims(xmp_desc_t array, int* ndims) {
  *ndims = array_of(array).ndims;
  return 0;
}
int xmp_array_gsize(xmp_desc_t array, int dim, int* size) {
  return of_array(array, dim, size, [](const pwx_array& a, int d) { return a.dim[d].size; });
}
int xmp_array_lsize(xmp_desc_t array, int dim, int* size) {
  return of_array(array, dim, size, [](const pwx_array& a, int d) {
    long count = 0;
    for (const Range& range : mine(a, d)) count += range.count();
    return count;
  });
}
int xmp_array_gcllbound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound, [](const pwx_array& a, int d) { return bounds(a, d).first; });
}
int xmp_array_gclubound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound, [](const pwx_array& a, int d) { return bounds(a, d).last; });
}
int xmp_array_lcllbound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound,
                  [](const pwx_array& a, int d) { return local(a, d, bounds(a, d).first); });
}
int xmp_array_lclubound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound, [](const pwx_array& a, int d) {
    const Range owned = bounds(a, d);
    return owned.count() == 0 ? local(a, d, owned.first) - 1 : local(a, d, owned.last);
  });
}
int xmp_array_gcglbound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound, [](const pwx_array&, int) { return 0; });
}
int xmp_array_gcgubound(xmp_desc_t array, int dim, int* bound) {
  return of_array(array, dim, bound, [](const pwx_array& a, int d) { return a.dim[d].size - 1; });
}
int xmp_array_lshadow(xmp_desc_t array, int dim, int* layers) {
  return of_array(array, dim, layers, [](const pwx_array& a, int d) { return a.dim[d].shadow[0]; });
}
int xmp_array_ushadow(xmp_desc_t array, int dim, int* layers) {
  return of_array(array, dim, layers, [](const pwx_array& a, int d) { return a.dim[d].shadow[1]; });
}
int xmp_array_lead_dim(xmp_desc_t array, int sizes[]) {
  const pwx_array& a = array_of(array);
  for (int d = 0; d < a.ndims; ++d) sizes[d] = static_cast<int>(a.ld[d]);
  return 0;
}
int xmp_array_laddr(xmp_desc_t array, void** address) {
  return guarded(&kXmp, [&] {
    *address = allocated(array_of(array), "xmp_array_laddr").memory.address();
    return 0;
  });
}
int xmp_array_gtol(xmp_desc_t array, int global[], int to[]) {
  const pwx_array& a = array_of(array);
  for (int d = 0; d < a.ndims; ++d) to[d] = static_cast<int>(local(a, d, global[d]));
  return 0;
}
int xmp_array_owner(xmp_desc_t array, int ndims, int index[], int dim) {
  const pwx_array& a = array_of(array);
  if (dim < 1 || dim > std::min(ndims, a.ndims) || index[dim - 1] < 0 ||
      index[dim - 1] >= a.dim[dim - 1].size)
    return -1;
  return owner_of_subscript(a, dim - 1, index[dim - 1]) + 1;
}

int xmp_align_axis(xmp_desc_t array, int dim, int* axis) {
  return of_array(array, dim, axis, [](const pwx_array& a, int d) { return a.dim[d].template_dim + 1; });
}
int xmp_align_offset(xmp_desc_t array, int dim, int* offset) {
  return of_array(array, dim, offset, [](const pwx_array& a, int d) { return a.dim[d].offset; });
}
/// Whether no dimension of the array is aligned with a dimension of the template.
int xmp_align_replicated(xmp_desc_t array, int dim, int* replicated) {
  const pwx_array& a = array_of(array);
  return answer(dim, a.on->ndims, replicated, [&](int k) {
    return std::none_of(a.dim, a.dim + a.ndims, [&](const pwx_array_dim& d) { return d.template_dim == k; });
  });
}
int xmp_align_template(xmp_desc_t array, xmp_desc_t* t) {
  *t = const_cast<pwx_template*>(array_of(array).on);
  return 0;
}

int xmp_template_fixed(xmp_desc_t t, int* fixed) {
  *fixed = template_of(t).fixed;
  return 0;
}
int xmp_template_ndims(xmp_desc_t t, int* ndims) {
  *ndims = template_of(t).ndims;
  return 0;
}
int xmp_template_lbound(xmp_desc_t t, int dim, int* bound) {
  return template_of(t).fixed == 0 ? -1 : of_template(t, dim, bound, [](const auto& d) { return d.first; });
}
int xmp_template_ubound(xmp_desc_t t, int dim, int* bound) {
  return template_of(t).fixed == 0 ? -1 : of_template(t, dim, bound, [](const auto& d) { return d.last; });
}
int xmp_dist_format(xmp_desc_t t, int dim, int* format) {
  return of_template(t, dim, format,
                     [](const auto& d) { return XMP_NOT_DISTRIBUTED + static_cast<int>(d.kind); });
}
int xmp_dist_blocksize(xmp_desc_t t, int dim, int* size) {
  return of_template(t, dim, size, [](const auto& d) {
    return d.kind == PWX_BLOCK || d.kind == PWX_CYCLIC ? d.width : d.owned_last - d.owned_first + 1;
  });
}
int xmp_dist_gblockmap(xmp_desc_t t, int dim, int map[]) {
  const pwx_template& of = template_of(t);
  if (dim < 1 || dim > of.ndims || of.dim[dim - 1].kind != PWX_GBLOCK || of.fixed == 0) return -1;
  const pwx_template_dim& d = of.dim[dim - 1];
  for (int part = 0; part < d.parts; ++part)
    map[part] = static_cast<int>(d.starts[part + 1] - d.starts[part]);
  return 0;
}
int xmp_dist_nodes(xmp_desc_t t, xmp_desc_t* nodes) {
  *nodes = const_cast<pwx_nodes*>(template_of(t).nodes);
  return template_of(t).distributed != 0 ? 0 : -1;
}
int xmp_dist_axis(xmp_desc_t t, int dim, int* axis) {
  return of_template(t, dim, axis, [](const auto& d) { return d.nodes_dim + 1; });
}

int xmp_nodes_ndims(xmp_desc_t nodes, int* ndims) {
  *ndims = nodes_at(nodes).ndims;
  return 0;
}
int xmp_nodes_index(xmp_desc_t nodes, int dim, int* index) {
  const pwx_nodes& p = nodes_at(nodes);
  return answer(dim, p.ndims, index, [&](int d) { return p.at[d] + 1; });
}
int xmp_nodes_size(xmp_desc_t nodes, int dim, int* size) {
  const pwx_nodes& p = nodes_at(nodes);
  return answer(dim, p.ndims, size, [&](int d) { return p.size[d]; });
}

}  // extern "C"
