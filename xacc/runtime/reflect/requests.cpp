#include "xacc/runtime/reflect/requests.h"

#include <algorithm>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

/// Whether an array's nodes are the executing ones, so that all of them count the same writes.
bool counted_alike(const pwx_array& a, const Set& set) {
  pwx_array_state& state = *a.state;
  if (state.executing != &set) {
    const pwx_nodes& nodes = *a.on->nodes;
    state.executing = &set;
    state.alike =
        nodes.total == set.size() && std::all_of(nodes.ranks, nodes.ranks + nodes.total, [&](int rank) {
          return std::ranges::find(set.ranks, rank) != set.ranks.end();
        });
  }
  return state.alike;
}

/// Whether the array was not written since a reflect that refreshed all requested halos.
bool unchanged(const ReflectPart& part, const ReflectRequest& request) {
  const pwx_array& a = *part.array;
  const Reflected& last = a.state->reflected[request.acc() ? 1 : 0];
  if (a.state->watch != 1 || !last.done || last.writes != writes_of(*a.state) ||
      (last.orthogonal && !request.orthogonal()))
    return false;
  if (request.acc())
    if (const Present* copy = find_present(a); copy == nullptr || copy->id != last.copy) return false;
  return std::equal(
      last.widths.begin(), last.widths.begin() + a.ndims, part.widths.begin(),
      [](const pwx_width& there, const pwx_width& needed) {
        return there.lo >= needed.lo && there.hi >= needed.hi &&
               ((needed.lo == 0 && needed.hi == 0) || (there.periodic != 0) == (needed.periodic != 0));
      });
}

}  // namespace

ReflectRequest request_of(int count, pwx_array* const* arrays, const pwx_width* widths,
                          const pwx_width* const* each, int flags, bool all) {
  ReflectRequest request{{}, flags};
  const Set& set = program().executing();
  for (int i = 0; i < count; ++i) {
    const pwx_array& a = *arrays[i];
    allocated(a, "reflect");
    if (widths != nullptr && a.ndims != arrays[0]->ndims)
      refuse("reflect with a width of ", arrays[0]->name, ", of ", arrays[0]->ndims, " dimensions, and ",
             a.name, ", of ", a.ndims, "; reflect them one by one");
    const pwx_width* const own = each != nullptr ? each[i] : widths;
    ReflectPart part{arrays[i], {}};
    if (own == nullptr)
      part.widths = whole_shadow(a);
    else
      std::copy_n(own, a.ndims, part.widths.begin());
    if (all || !counted_alike(a, set) || !unchanged(part, request)) request.parts.push_back(part);
  }
  return request;
}

}  // namespace pwx
