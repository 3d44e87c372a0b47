#include "xacc/runtime/arrays.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "xacc/runtime/coarrays.h"
#include "xacc/runtime/exchanges.h"
#include "xacc/runtime/failure.h"
#include "xacc/runtime/gpu.h"
#include "xacc/runtime/halos.h"
#include "xacc/runtime/kernels.h"
#include "xacc/runtime/present.h"
#include "xacc/runtime/program.h"
#include "xacc/runtime/reach.h"

namespace pwx {
namespace {

struct ArrayAsk {
  const char* name;
  size_t element_bytes;
  int ndims;
  const long* sizes;  ///< null: not known yet
  const pwx_template* t;
  const int* template_dim;
  const long* offset;
  const long* shadow_lo;
  const long* shadow_hi;
};

uint64_t freed_count = 0;
uint64_t all_written = 0;

/// By the address of their memory.
std::map<const void*, std::unique_ptr<pwx_array_state>>& states() {
  static auto& all = *new std::map<const void*, std::unique_ptr<pwx_array_state>>;  // outlives atexit
  return all;
}

void check_dimension(const ArrayAsk& asked, int d) {
  const auto which = [&] { return text("dimension ", d, " of ", asked.name); };
  const bool full = asked.shadow_lo[d] < 0;
  if (!full && asked.shadow_hi[d] < 0) refuse("the shadow of ", which(), " is ", asked.shadow_hi[d]);
  const int k = asked.template_dim[d];
  if (k < 0) return;
  if (k >= asked.t->ndims)
    refuse(which(), " is aligned with dimension ", k, " of template ", asked.t->name, ", which has ",
           asked.t->ndims);
  const pwx_template_dim& t = asked.t->dim[k];
  if (t.kind == PWX_CYCLIC && !full && (asked.shadow_lo[d] > 0 || asked.shadow_hi[d] > 0))
    refuse(which(), " has a shadow of ", asked.shadow_lo[d], ":", asked.shadow_hi[d],
           ", but is distributed cyclic; a shadow needs block or gblock");
  if (asked.sizes == nullptr || asked.sizes[d] == 0) return;
  const long first = asked.offset[d], last = asked.sizes[d] - 1 + asked.offset[d];
  if (first < t.first || last > t.last)
    refuse(which(), " is aligned with indices ", first, " to ", last, " of template ", asked.t->name,
           ", which has ", t.first, " to ", t.last, "; make the template larger or change the alignment");
}

void describe(pwx_array& a, const ArrayAsk& asked) {
  if (asked.ndims < 1 || asked.ndims > PWX_MAX_DIMS)
    refuse("array ", asked.name, " has ", asked.ndims, " dimensions; 1 to ", PWX_MAX_DIMS, " are possible");
  if (!asked.t->fixed || !asked.t->distributed)
    refuse("array ", asked.name, " is aligned with template ", asked.t->name, ", which is not ",
           asked.t->fixed ? "distributed" : "fixed", " yet; do that before the array is allocated");
  a.name = asked.name;
  a.element_bytes = asked.element_bytes;
  a.ndims = asked.ndims;
  a.on = asked.t;
  for (int d = 0; d < a.ndims; ++d) {
    check_dimension(asked, d);
    pwx_array_dim& dim = a.dim[d];
    dim.size = asked.sizes == nullptr ? 0 : asked.sizes[d];
    dim.template_dim = asked.template_dim[d];
    dim.offset = dim.template_dim < 0 ? 0 : asked.offset[d];
    const bool full = asked.shadow_lo[d] < 0;
    dim.shadow[0] = full ? -1 : asked.shadow_lo[d];
    dim.shadow[1] = full ? -1 : asked.shadow_hi[d];
  }
}

/// How many elements of the memory are the array's: where a rank owns less than others, the rest is none.
long held_of(const pwx_array& a, int d, const Placed& placed) {
  const pwx_template_dim* t = template_dim(a, d);
  if (is_full(a.dim[d]) || t == nullptr || t->kind == PWX_CYCLIC) return placed.ld;
  const long own = placed.owned.count();
  return own == 0 ? 0 : own + a.dim[d].shadow[0] + a.dim[d].shadow[1];
}

/// Fills in where this rank's part lies. Gives the bytes of its memory.
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

/// The state's own copy of what the array is aligned with: a function's template ends with its block.
void copy_mapping(pwx_array_state& state) {
  state.nodes = *state.shape.on->nodes;
  state.on = *state.shape.on;
  state.on.nodes = &state.nodes;
  for (size_t d = 0; d < static_cast<size_t>(state.on.ndims); ++d) {
    pwx_template_dim& dim = state.on.dim[d];
    if (dim.starts == nullptr) continue;
    state.starts[d].assign(dim.starts, dim.starts + dim.parts + 1);
    dim.starts = state.starts[d].data();
  }
  state.shape.on = &state.on;
}

/// Takes an array into use, which is zeros.
void use(pwx_array& a, std::unique_ptr<pwx_array_state> state) {
  a.memory = state->memory.address();
  a.state = state.get();
  state->watch = a.watch;
  state->common_id = publish_array(a, state->memory);
  ++state->life;
  ++state->writes;
  state->reflected = {};
  states().emplace(a.memory, std::move(state));
}

void allocate(pwx_array& a) {
  static uint64_t ids = 0;
  if (a.state != nullptr) refuse("array ", a.name, " is allocated already; free it first");
  const uint64_t bytes = place_all(a);
  const bool member = a.on->nodes->member != 0;
  peerway::Region memory = program().context.allocate(peerway::host, member ? bytes : a.element_bytes);
  a.memory = memory.address();
  auto state = std::make_unique<pwx_array_state>(++ids, a, std::move(memory), bytes);
  state->shape.state = state.get();
  copy_mapping(*state);
  use(a, std::move(state));
}

bool same_template(const pwx_template& a, const pwx_template& b) {
  if (&a == &b) return true;
  if (a.ndims != b.ndims || !a.fixed || !b.fixed || a.nodes->total != b.nodes->total) return false;
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_template_dim &one = a.dim[d], &other = b.dim[d];
    if (one.kind != other.kind || one.nodes_dim != other.nodes_dim || one.parts != other.parts ||
        one.first != other.first || one.last != other.last || one.width != other.width)
      return false;
    if (one.kind == PWX_GBLOCK && !std::equal(one.starts, one.starts + one.parts, other.starts)) return false;
  }
  return std::equal(a.nodes->ranks, a.nodes->ranks + a.nodes->total, b.nodes->ranks);
}

/// Where the array is not what was asked for: how it differs; else empty.
std::string difference(const pwx_array& a, const ArrayAsk& asked) {
  if (a.element_bytes != asked.element_bytes)
    return text("its elements have ", a.element_bytes, " bytes, not ", asked.element_bytes);
  if (a.ndims != asked.ndims) return text("it has ", a.ndims, " dimensions, not ", asked.ndims);
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_array_dim& dim = a.dim[d];
    const auto which = [&](const char* what) { return text(what, " of dimension ", d, " is "); };
    const long lo = asked.shadow_lo[d] < 0 ? -1 : asked.shadow_lo[d];
    const long hi = asked.shadow_lo[d] < 0 ? -1 : asked.shadow_hi[d];
    if (asked.sizes[d] > 0 && dim.size != asked.sizes[d])
      return text(which("the size"), dim.size, ", not ", asked.sizes[d]);
    if (dim.template_dim != asked.template_dim[d])
      return text(which("the dimension of the template that it is aligned with, from 0, -1 for none,"),
                  dim.template_dim, ", not ", asked.template_dim[d]);
    if (dim.template_dim >= 0 && dim.offset != asked.offset[d])
      return text(which("the offset of the alignment"), dim.offset, ", not ", asked.offset[d]);
    if (dim.shadow[0] != lo || dim.shadow[1] != hi)
      return text(which("the shadow"), dim.shadow[0], ":", dim.shadow[1], ", not ", lo, ":", hi);
  }
  if (!same_template(*a.on, *asked.t))
    return text("it is aligned with template ", a.on->name, ", which differs");
  return {};
}

void bind(pwx_array& v, void* argument, const ArrayAsk& asked) {
  if (v.state != nullptr && v.memory == argument && v.bound == freed_count &&
      difference(v.state->shape, asked).empty()) {
    v.on = asked.t;  // a template of the function may be another object now
    return;
  }
  const auto of_argument = states().find(argument);
  if (of_argument == states().end())
    refuse("parameter ", asked.name,
           ": the argument is no distributed array; pass one, from its first element");
  const pwx_array& shape = of_argument->second->shape;
  if (const std::string why = difference(shape, asked); !why.empty())
    refuse("parameter ", asked.name, ": the argument is ", shape.name, ", but ", why, "; declare both alike");
  v = shape;
  v.name = asked.name;
  v.on = asked.t;
  v.bound = freed_count;
}

/// Arrays of functions that returned, the last one behind. How many a rank keeps is its own affair: before a
/// plan is used again its ranks compare its number (agreed_on in reflects.cpp).
std::vector<std::unique_ptr<pwx_array_state>>& kept() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_array_state>>;  // outlives atexit
  return all;
}
constexpr size_t kKeptOfSite = 4, kKept = 64;
constexpr uint64_t kKeptBytes = uint64_t{256} << 20;

bool same_places(const pwx_array& a, const pwx_array& b) {
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_array_dim &one = a.dim[d], &other = b.dim[d];
    if (one.size != other.size || one.ld != other.ld || one.base != other.base || one.first != other.first ||
        one.last != other.last)
      return false;
  }
  return true;
}

/// An array of a function, which has just been described.
void enter(pwx_array& a, const ArrayAsk& asked, const pwx_where& where) {
  const std::string site = text(where.file, ":", where.line, ":", asked.name);
  place_all(a);
  const auto fits = [&](const auto& one) {
    return one->site == site && difference(one->shape, asked).empty() && same_places(one->shape, a);
  };
  const auto found = std::find_if(kept().rbegin(), kept().rend(), fits);
  if (found == kept().rend()) {
    allocate(a);
    a.state->local = true;
    a.state->site = site;
    return;
  }
  std::unique_ptr<pwx_array_state> state = std::move(*found);
  kept().erase(std::next(found).base());
  std::memset(state->memory.address(), 0, state->memory.bytes());
  use(a, std::move(state));
}

/// Takes an array out of use.
std::unique_ptr<pwx_array_state> retired(pwx_array& a) {
  forget_present(a.state->memory.address());
  withdraw(a.state->common_id.id);
  ++freed_count;
  std::unique_ptr<pwx_array_state> state = std::move(states().extract(a.state->shape.memory).mapped());
  a.state = nullptr;
  a.memory = nullptr;
  for (pwx_array_dim& dim : a.dim) dim.held = 0;
  return state;
}

/// Ends the arrays that were kept longest, beyond what is kept at most.
void trim_kept(const std::string& site) {
  const auto end = [](auto at) {
    forget_halos_of((*at)->id);
    if ((*at)->spare.region) wait_for_all();  // what uses the memory on the GPU
    kept().erase(at);
  };
  const auto of_site = [&](const auto& one) { return one->site == site; };
  if (std::ranges::count_if(kept(), of_site) > static_cast<long>(kKeptOfSite))
    end(std::ranges::find_if(kept(), of_site));
  const auto bytes = [] {
    uint64_t sum = 0;
    for (const auto& one : kept()) sum += one->bytes;
    return sum;
  };
  while (!kept().empty() && (kept().size() > kKept || bytes() > kKeptBytes)) end(kept().begin());
}

}  // namespace

const pwx_array_state& allocated(const pwx_array& a, const char* what) {
  if (a.state == nullptr)
    refuse(what, " of ", a.name == nullptr ? "an array" : a.name, ", which is not allocated");
  return *a.state;
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

pwx_array_state* array_at(const void* memory) {
  const auto known = states().find(memory);
  return known == states().end() ? nullptr : known->second.get();
}

void free_everything() {
  free_halos();
  free_present();
  free_exchanges();
  free_kernels();
  free_queues();
  free_coarrays();
  free_key_table();
  free_locks();
  states().clear();
  kept().clear();
}

uint64_t freed() { return freed_count; }
uint64_t writes_of(const pwx_array_state& state) { return state.writes + all_written; }

}  // namespace pwx

extern "C" {

void pwx_array_init(pwx_array* a, const char* name, size_t element_bytes, int ndims, const long* sizes,
                    const pwx_template* t, const int* template_dim, const long* offset, const long* shadow_lo,
                    const long* shadow_hi, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::describe(*a, {name, element_bytes, ndims, sizes, t, template_dim, offset, shadow_lo, shadow_hi});
    pwx::allocate(*a);
  });
}

void pwx_array_open(pwx_array* a, const char* name, size_t element_bytes, int ndims, const pwx_template* t,
                    const int* template_dim, const long* offset, const long* shadow_lo, const long* shadow_hi,
                    const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::describe(*a, {name, element_bytes, ndims, nullptr, t, template_dim, offset, shadow_lo, shadow_hi});
  });
}

void* pwx_array_allocate(pwx_array* a, const long* sizes, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    if (a->on == nullptr)
      pwx::refuse("memory for a pointer that is aligned with no template; align it first");
    int template_dims[PWX_MAX_DIMS];
    long offset[PWX_MAX_DIMS], lo[PWX_MAX_DIMS], hi[PWX_MAX_DIMS];
    for (int d = 0; d < a->ndims; ++d) {
      template_dims[d] = a->dim[d].template_dim;
      offset[d] = a->dim[d].offset;
      lo[d] = a->dim[d].shadow[0];
      hi[d] = a->dim[d].shadow[1];
    }
    pwx::describe(*a, {a->name, a->element_bytes, a->ndims, sizes, a->on, template_dims, offset, lo, hi});
    pwx::allocate(*a);
    return a->memory;
  });
}

void pwx_array_enter(pwx_array* a, const char* name, size_t element_bytes, int ndims, const long* sizes,
                     const pwx_template* t, const int* template_dim, const long* offset,
                     const long* shadow_lo, const long* shadow_hi, const pwx_where* where) {
  pwx_array_leave(a);
  pwx::guarded(where, [&] {
    const pwx::ArrayAsk asked{name,         element_bytes, ndims,     sizes,    t,
                              template_dim, offset,        shadow_lo, shadow_hi};
    pwx::describe(*a, asked);
    pwx::enter(*a, asked, *where);
  });
}

void pwx_array_leave(pwx_array* a) {
  if (a->state == nullptr || pwx::ended()) return;
  static const pwx_where nowhere{"return", 0};
  pwx::guarded(&nowhere, [&] {
    pwx_array_state& state = *a->state;
    pwx::leave_halos_of(state.id);
    auto kept = pwx::retired(*a);
    const std::string site = kept->site;
    pwx::kept().push_back(std::move(kept));
    pwx::trim_kept(site);
  });
}

void pwx_array_free(pwx_array* a) {
  if (a->state == nullptr || pwx::ended()) return;
  static const pwx_where nowhere{"free", 0};
  pwx::guarded(&nowhere, [&] {
    pwx::forget_halos_of(a->state->id);
    pwx::retired(*a).reset();
  });
}

void pwx_array_watch(pwx_array* a, int watch) {
  a->watch = std::max(a->watch, watch);
  if (a->state != nullptr) a->state->watch = a->watch;
}

void pwx_written(const pwx_array* a) {
  if (a->state != nullptr) ++a->state->writes;
}

void pwx_written_all(void) { ++pwx::all_written; }

void pwx_array_expect(const pwx_array* a, int d, long ld, const pwx_where* where) {
  if (a->ld[d] == ld) return;
  pwx_error(
      where,
      "the code of %s was generated for %ld elements in dimension %d of a node's memory, but there are %ld",
      a->name, ld, d, a->ld[d]);
}

void pwx_not_in_memory(const pwx_array* a, int d, long i, const char* file, int line) {
  const pwx_where where{file, line};
  const std::string name = a->name == nullptr ? "an array" : a->name;
  const std::string used = pwx::text("element ", i, " of dimension ", d, " of ", name, " is used, but ");
  if (a->state == nullptr) pwx::end_with(&where, used + "this is not allocated");
  if (a->on->nodes->member == 0)
    pwx::end_with(&where, used + "this node has no part of it: it is none of the array's nodes");
  const pwx_array_dim& dim = a->dim[d];
  std::string has = "this node has others: it is distributed cyclic";
  if (pwx::template_dim(*a, d)->kind != PWX_CYCLIC) {
    has = dim.first > dim.last ? "this node owns none"
                               : pwx::text("this node owns ", dim.first, " to ", dim.last);
    if (dim.held > 0)
      has += pwx::text(" and has ", dim.base, " to ", dim.base + dim.held - 1, " in its memory");
  }
  pwx::end_with(&where, pwx::text(used, has, " (of 0 to ", dim.size - 1,
                                  "); subscripts count in the whole array: let an xmp loop or a task give "
                                  "each node what it owns"));
}

void pwx_bind(pwx_array* v, void* argument, const char* name, size_t element_bytes, int ndims,
              const long* sizes, const pwx_template* t, const int* template_dim, const long* offset,
              const long* shadow_lo, const long* shadow_hi, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::bind(*v, argument,
              {name, element_bytes, ndims, sizes, t, template_dim, offset, shadow_lo, shadow_hi});
  });
}

}  // extern "C"
