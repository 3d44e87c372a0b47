// Reflects: the directives that start and finish them, and the plans that refresh halos which are not up to
// date.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gpu/device_loops.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"
#include "xacc/runtime/reflect/plans.h"
#include "xacc/runtime/reflect/requests.h"

/// One reflect in the text: the plans of all its calls so far, the latest first.
struct pwx_halo_state {
  std::vector<std::shared_ptr<pwx::Reflect>> entries;
  bool overlapped = false;  ///< by a kernel, the last time
};

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_halo_state>>& halos() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_halo_state>>;  // outlives atexit
  return all;
}

/// The plans of reflects that start and finish at once. Directives for the same arrays share them. Those of
/// others leave room for the kernels between start and finish.
std::vector<std::shared_ptr<Reflect>>& shared() {
  static auto& all = *new std::vector<std::shared_ptr<Reflect>>;  // outlives atexit
  return all;
}

std::map<long, std::vector<Reflect*>>& asynchronous() {
  static auto& all = *new std::map<long, std::vector<Reflect*>>;  // outlives atexit
  return all;
}

/// Whether all ranks of a set have the same plan from an earlier call of their functions; ranks may keep
/// different plans. Collective.
bool agreed_on(const Reflect* entry, const Set& set) {
  return agree(program(), set, entry == nullptr ? 0 : entry->number);
}

void end_plan(Reflect& entry) {
  entry.stale = true;
  if (entry.plan) forget_graphs();
  entry.plan.reset();
}

Reflect& entry_of(pwx_halo& halo, const ReflectRequest& request, bool shares) {
  const Set& set = program().executing();
  if (halo.state == nullptr) halo.state = halos().emplace_back(std::make_unique<pwx_halo_state>()).get();
  auto& entries = halo.state->entries;
  const auto matches = [&](const auto& entry) {
    return entry->shared == shares && is_for(*entry, request, set);
  };
  auto known = std::ranges::find_if(entries, matches);
  if (known == entries.end() && shares)
    if (const auto other = std::ranges::find_if(shared(), matches); other != shared().end())
      known = entries.insert(known, *other);
  if (std::ranges::any_of(request.parts, [](const auto& part) { return part.array->state->local; })) {
    std::vector<uint64_t> lives;
    for (const ReflectPart& part : request.parts) lives.push_back(part.array->state->life);
    Reflect* const entry = known == entries.end() ? nullptr : known->get();
    if (entry == nullptr || entry->lives != lives) {
      if (agreed_on(entry, set)) {
        entry->lives = std::move(lives);
      } else if (entry != nullptr) {
        launch_recorded();
        end_plan(*entry);
        known = entries.end();
      }
    }
  }
  if (known == entries.begin() && known != entries.end()) return **known;
  if (known != entries.end()) {
    std::rotate(entries.begin(), known, known + 1);
    return *entries.front();
  }
  const auto has_ended = [](const auto& entry) { return entry->stale && !entry->under_way; };
  std::erase_if(entries, has_ended);
  std::erase_if(shared(), has_ended);
  launch_recorded();  // a rank may have launched its part of it already, and wait
  const auto& entry = *entries.insert(entries.begin(), make_reflect(request, set));
  entry->shared = shares;
  if (shares)
    shared().push_back(entry);
  else if (entry->plan)
    entry->plan->leave_room();
  return *entry;
}

/// Gets the plan that a directive needs, and records the writes counted so far; null if all halos are up to
/// date.
Reflect* plan_for(pwx_halo& halo, const ReflectRequest& request, bool shares) {
  if (request.parts.empty()) return nullptr;
  Reflect& entry = entry_of(halo, request, shares);
  if (entry.under_way)
    refuse("reflect of ", entry.names, " while the one before is under way; use wait_async first");
  entry.writes.clear();
  for (const pwx_array_state* state : entry.states) entry.writes.push_back(writes_of(*state));
  return &entry;
}

/// Records that an exchange is finished or, on the GPU, ordered before the work that follows.
void record_done(Reflect& entry) {
  entry.under_way = false;
  const bool acc = !entry.copies.empty();
  if (acc && entry.outside) wait_for_unqueued();
  for (size_t i = 0; i < entry.states.size(); ++i)
    entry.states[i]->reflected[acc ? 1 : 0] = {true, entry.widths[i], entry.orthogonal,
                                               acc ? entry.copies[i] : 0, entry.writes[i]};
}

/// Starts an exchange that finish() ends. On the GPU it has a queue of its own, so that kernels before
/// finish() overlap it.
Reflect* start(pwx_halo& halo, const ReflectRequest& request) {
  Reflect* const entry = plan_for(halo, request, false);
  if (entry == nullptr) return nullptr;
  if (entry->plan)
    peerway::check(entry->copies.empty() ? entry->plan->start()
                                         : entry->plan->start(peerway_stream(kHaloQueue)));
  entry->under_way = true;
  return entry;
}

void finish(Reflect& entry) {
  if (entry.plan && entry.copies.empty()) peerway::check(entry.plan->finish());
  if (entry.plan && !entry.copies.empty()) {
    order(PWX_QUEUE_SYNC, kHaloQueue);  // later work may write what was sent
    peerway::check(entry.plan->finish(peerway_stream(PWX_QUEUE_SYNC)));
  }
  record_done(entry);
}

/// Starts and finishes an exchange. On the GPU that is one launch.
void reflect(pwx_halo& halo, const ReflectRequest& request) {
  Reflect* const entry = plan_for(halo, request, true);
  if (entry == nullptr) return;
  if (request.acc()) {
    note_reflect_of_loop(*entry);
    if (entry->plan) reflect_in_order(*entry->plan, entry->memory, halo.state->overlapped);
  } else if (entry->plan) {
    peerway::check(entry->plan->start());
    peerway::check(entry->plan->finish());
  }
  record_done(*entry);
}

/// The widths and flags of reflect_init, by array.
struct Persistent {
  std::vector<pwx_width> widths;
  int flags;
};
std::map<uint64_t, Persistent>& inits() {
  static auto& all = *new std::map<uint64_t, Persistent>;  // outlives atexit
  return all;
}
pwx_halo persistent{};

const Persistent& init_of(const pwx_array& a) {
  const auto init = inits().find(allocated(a, "reflect_do").id);
  if (init == inits().end()) refuse("reflect_do of ", a.name, " without a reflect_init before; add one");
  return init->second;
}

/// Reflects arrays as they were initialised; those with the same flags share a plan.
void reflect_do(int count, pwx_array* const* arrays) {
  std::map<int, ReflectRequest> requests;
  for (int i = 0; i < count; ++i) {
    const Persistent& init = init_of(*arrays[i]);
    ReflectRequest request =
        request_of(1, arrays + i, init.widths.empty() ? nullptr : init.widths.data(), nullptr, init.flags);
    ReflectRequest& all = requests.try_emplace(init.flags, ReflectRequest{{}, init.flags}).first->second;
    if (!request.parts.empty()) all.parts.push_back(request.parts.front());
  }
  for (const auto& [flags, request] : requests) reflect(persistent, request);
}

/// Ends the plans whose list `ids` has the id, since their memory ends.
void end_plans(std::vector<uint64_t> Reflect::* ids, uint64_t id) {
  launch_recorded();
  for (const auto& halo : halos())
    for (const auto& entry : halo->entries) {
      if (std::ranges::find((*entry).*ids, id) == ((*entry).*ids).end()) continue;
      if (entry->under_way) refuse("an array is freed while a reflect of ", entry->names, " is under way");
      end_plan(*entry);
    }
}

/// Keeps the plans of a function's array when the function returns. Throws Failure if one is under way.
void leave_halos_of(uint64_t array_id) {
  inits().erase(array_id);
  for (const auto& halo : halos())
    for (const auto& entry : halo->entries)
      if (entry->under_way && std::ranges::find(entry->arrays, array_id) != entry->arrays.end())
        refuse("an array is freed while a reflect of ", entry->names, " is under way");
}

void forget_halos_of(uint64_t array_id) {
  inits().erase(array_id);
  end_plans(&Reflect::arrays, array_id);
}

void forget_halos_of_present(uint64_t id) { end_plans(&Reflect::copies, id); }

void make_halos_old(Reflect& entry) {
  if (entry.stale) return;
  for (pwx_array_state* const state : entry.states) state->reflected[1].done = false;
}

const bool halos_notify = (notify_halos(make_halos_old), true);
const bool arrays_notify =
    (notify_array_user({leave_halos_of, forget_halos_of, forget_halos_of_present}), true);

}  // namespace

void free_halos() {
  forget_graphs();
  asynchronous().clear();
  inits().clear();
  shared().clear();
  for (const auto& halo : halos()) halo->entries.clear();
}

}  // namespace pwx

extern "C" {

void pwx_reflect_start(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                       int flags, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::start(*halo, pwx::request_of(count, arrays, widths, nullptr, flags)); });
}

void pwx_reflect_wait(int count, pwx_array* const* arrays, const pwx_where* where) {
  pwx::guarded(where, [&] {
    for (const auto& halo : pwx::halos())
      for (const auto& entry : halo->entries)
        if (entry->under_way && std::any_of(arrays, arrays + count, [&](const pwx_array* a) {
              return std::ranges::find(entry->arrays, pwx::allocated(*a, "reflect_wait").id) !=
                     entry->arrays.end();
            }))
          pwx::finish(*entry);
  });
}

void pwx_reflect(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths, int flags,
                 const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::reflect(*halo, pwx::request_of(count, arrays, widths, nullptr, flags)); });
}

void pwx_reflect_each(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* const* widths,
                      int flags, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const auto request = pwx::request_of(count, arrays, nullptr, widths, flags);
    if ((flags & PWX_REFLECT_NOWAIT) != 0)
      pwx::start(*halo, request);
    else
      pwx::reflect(*halo, request);
  });
}

void pwx_reflect_async(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                       int flags, long id, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (auto* entry = pwx::start(*halo, pwx::request_of(count, arrays, widths, nullptr, flags)))
      pwx::asynchronous()[id].push_back(entry);
  });
}

void pwx_wait_async(long id, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const auto started = pwx::asynchronous().find(id);
    // such a communication was complete when its directive returned
    if (started == pwx::asynchronous().end()) return;
    for (pwx::Reflect* entry : started->second) pwx::finish(*entry);
    pwx::asynchronous().erase(started);
  });
}

void pwx_reflect_init(int count, pwx_array* const* arrays, const pwx_width* widths, int flags,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    for (int i = 0; i < count; ++i) {
      const pwx_array& a = *arrays[i];
      pwx::Persistent init{{}, flags};
      if (widths != nullptr) init.widths.assign(widths, widths + a.ndims);
      pwx::inits()[pwx::allocated(a, "reflect_init").id] = init;
    }
    pwx::entry_of(pwx::persistent, pwx::request_of(count, arrays, widths, nullptr, flags, true), true);
  });
}

void pwx_reflect_do(int count, pwx_array* const* arrays, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::reflect_do(count, arrays); });
}

}  // extern "C"
