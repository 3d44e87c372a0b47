#include "xacc/runtime/data/local_arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/array_shape.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

/// Arrays of functions that returned, the latest last. Ranks may keep different numbers of them: before a
/// plan is used again, its ranks compare its number (agreed_on in reflects.cpp).
std::vector<std::unique_ptr<pwx_array_state>>& kept() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_array_state>>;  // outlives atexit
  return all;
}
constexpr size_t kKeptOfSite = 4, kKept = 64;
constexpr uint64_t kKeptBytes = uint64_t{256} << 20;

/// Gives memory to an array of a function, which has just been described.
void enter(pwx_array& a, const ArrayDescription& wanted, const pwx_where& where) {
  const std::string site = text(where.file, ":", where.line, ":", wanted.name);
  place_all(a);
  const auto fits = [&](const auto& array) {
    return array->site == site && difference(array->shape, wanted).empty() && same_places(array->shape, a);
  };
  const auto reused = std::find_if(kept().rbegin(), kept().rend(), fits);
  if (reused == kept().rend()) {
    allocate(a);
    a.state->local = true;
    a.state->site = site;
    return;
  }
  std::unique_ptr<pwx_array_state> state = std::move(*reused);
  kept().erase(std::next(reused).base());
  std::memset(state->memory.address(), 0, state->memory.bytes());
  take_into_use(a, std::move(state));
}

/// Frees the oldest kept arrays beyond the limits.
void trim_kept(const std::string& site) {
  const auto end = [](auto at) {
    tell_array_users(&ArrayUser::array_freed, (*at)->id);
    if ((*at)->spare.region) wait_for_all();  // for work that uses the memory on the GPU
    kept().erase(at);
  };
  const auto of_site = [&](const auto& array) { return array->site == site; };
  if (std::ranges::count_if(kept(), of_site) > static_cast<long>(kKeptOfSite))
    end(std::ranges::find_if(kept(), of_site));
  const auto bytes = [] {
    uint64_t sum = 0;
    for (const auto& array : kept()) sum += array->bytes;
    return sum;
  };
  while (!kept().empty() && (kept().size() > kKept || bytes() > kKeptBytes)) end(kept().begin());
}

}  // namespace

void free_local_arrays() { kept().clear(); }

}  // namespace pwx

extern "C" {

void pwx_array_enter(pwx_array* a, const char* name, size_t element_bytes, int ndims, const long* sizes,
                     const pwx_template* t, const int* template_dim, const long* offset,
                     const long* shadow_lo, const long* shadow_hi, const pwx_where* where) {
  pwx_array_leave(a);
  pwx::guarded(where, [&] {
    const pwx::ArrayDescription wanted{name,         element_bytes, ndims,     sizes,    t,
                                       template_dim, offset,        shadow_lo, shadow_hi};
    pwx::describe(*a, wanted);
    pwx::enter(*a, wanted, *where);
  });
}

void pwx_array_leave(pwx_array* a) {
  if (a->state == nullptr || pwx::ended()) return;
  static const pwx_where nowhere{"return", 0};
  pwx::guarded(&nowhere, [&] {
    pwx_array_state& state = *a->state;
    pwx::tell_array_users(&pwx::ArrayUser::array_left, state.id);
    auto kept = pwx::take_out_of_use(*a);
    const std::string site = kept->site;
    pwx::kept().push_back(std::move(kept));
    pwx::trim_kept(site);
  });
}

}  // extern "C"
