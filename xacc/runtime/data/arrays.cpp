#include "xacc/runtime/data/arrays.h"

#include <algorithm>
#include <map>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/array_shape.h"
#include "xacc/runtime/data/key_table.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

uint64_t freed_count = 0;
uint64_t all_written = 0;

/// The states of all arrays in use, by the address of their memory.
std::map<const void*, std::unique_ptr<pwx_array_state>>& states() {
  static auto& all = *new std::map<const void*, std::unique_ptr<pwx_array_state>>;  // outlives atexit
  return all;
}

std::vector<ArrayUser>& users() {
  static std::vector<ArrayUser> all;
  return all;
}

/// Copies the mapping of an array into its state: a function's template ends with its block.
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

}  // namespace

void take_into_use(pwx_array& a, std::unique_ptr<pwx_array_state> state) {
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
  take_into_use(a, std::move(state));
}

std::unique_ptr<pwx_array_state> take_out_of_use(pwx_array& a) {
  forget_present(a.state->memory.address());
  withdraw(a.state->common_id.id);
  ++freed_count;
  std::unique_ptr<pwx_array_state> state = std::move(states().extract(a.state->shape.memory).mapped());
  a.state = nullptr;
  a.memory = nullptr;
  for (pwx_array_dim& dim : a.dim) dim.held = 0;
  return state;
}

namespace {

void bind(pwx_array& v, void* argument, const ArrayDescription& wanted) {
  if (v.state != nullptr && v.memory == argument && v.bound == freed_count &&
      difference(v.state->shape, wanted).empty()) {
    v.on = wanted.t;  // in a function, the template may be another object now
    return;
  }
  const auto of_argument = states().find(argument);
  if (of_argument == states().end())
    refuse("parameter ", wanted.name,
           ": the argument is no distributed array; pass one, from its first element");
  const pwx_array& shape = of_argument->second->shape;
  if (const std::string why = difference(shape, wanted); !why.empty())
    refuse("parameter ", wanted.name, ": the argument is ", shape.name, ", but ", why,
           "; declare both alike");
  const long* const lower = v.lower;
  v = shape;
  v.lower = lower;
  v.name = wanted.name;
  v.on = wanted.t;
  v.bound = freed_count;
}

}  // namespace

const pwx_array_state& allocated(const pwx_array& a, const char* action) {
  if (a.state == nullptr)
    refuse(action, " of ", a.name == nullptr ? "an array" : a.name, ", which is not allocated");
  return *a.state;
}

pwx_array_state* array_at(const void* memory) {
  const auto known = states().find(memory);
  return known == states().end() ? nullptr : known->second.get();
}

void notify_array_user(const ArrayUser& of_layer_above) { users().push_back(of_layer_above); }
void tell_array_users(void (*ArrayUser::*event)(uint64_t), uint64_t id) {
  for (const ArrayUser& user : users()) (user.*event)(id);
}

void free_arrays() { states().clear(); }

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

void pwx_array_free(pwx_array* a) {
  if (a->state == nullptr || pwx::ended()) return;
  static const pwx_where nowhere{"free", 0};
  pwx::guarded(&nowhere, [&] {
    pwx::tell_array_users(&pwx::ArrayUser::array_freed, a->state->id);
    pwx::take_out_of_use(*a).reset();
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

void pwx_bind(pwx_array* v, void* argument, const char* name, size_t element_bytes, int ndims,
              const long* sizes, const pwx_template* t, const int* template_dim, const long* offset,
              const long* shadow_lo, const long* shadow_hi, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::bind(*v, argument,
              {name, element_bytes, ndims, sizes, t, template_dim, offset, shadow_lo, shadow_hi});
  });
}

}  // extern "C"
