#include "xacc/halos.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "xacc/arrays.h"
#include "xacc/failure.h"
#include "xacc/gpu.h"
#include "xacc/pieces.h"
#include "xacc/present.h"
#include "xacc/program.h"

namespace pwx {

/// One plan, and what it was made for.
struct Reflect {
  std::vector<uint64_t> arrays;   ///< ids
  std::vector<uint64_t> copies;   ///< ids of the copies on the GPU; empty: of the host's memory
  std::vector<pwx_width> widths;  ///< empty: of the whole shadow
  bool orthogonal = false;
  const Set* set = nullptr;
  std::string names{};
  std::optional<peerway::Plan> plan{};  ///< none: this rank has nothing to move
  bool under_way = false;
  bool idle = false;              ///< under way, but nothing wrote the arrays since their halos were brought
  bool alike = false;             ///< all executing nodes count the same writes of the arrays
  std::vector<Widths> brought{};  ///< of each array
  std::vector<pwx_array_state*> states{};  ///< of each array, while it is under way
  std::vector<uint64_t> writes{};          ///< of each array, when it began
  bool stale = false;                      ///< an array was freed
};

namespace {

struct ReflectAsk {
  int count;
  pwx_array* const* arrays;
  const pwx_width* widths;
  int flags;

  [[nodiscard]] bool orthogonal() const { return (flags & PWX_REFLECT_ORTHOGONAL) != 0; }
  /// Of the copies on the GPU?
  [[nodiscard]] bool acc() const { return (flags & PWX_REFLECT_ACC) != 0 && gpu() != nullptr; }
};

std::string names_of(const ReflectAsk& asked) {
  std::string names;
  for (int i = 0; i < asked.count; ++i) names += text(i > 0 ? ", " : "", asked.arrays[i]->name);
  return names;
}

Widths widths_of(const ReflectAsk& asked, const pwx_array& a) {
  if (asked.widths == nullptr) return whole_shadow(a);
  Widths widths{};
  std::copy_n(asked.widths, a.ndims, widths.begin());
  return widths;
}

void check_asked(const ReflectAsk& asked, const Set& set) {
  for (int i = 0; i < asked.count; ++i) {
    const pwx_array& a = *asked.arrays[i];
    allocated(a, "reflect");
    if (asked.widths != nullptr && a.ndims != asked.arrays[0]->ndims)
      refuse("reflect with a width of ", asked.arrays[0]->name, ", of ", asked.arrays[0]->ndims,
             " dimensions, and ", a.name, ", of ", a.ndims, "; reflect them one by one");
    check_widths(a, widths_of(asked, a));
    for (int node = 0; node < a.on->nodes->total; ++node)
      if (std::ranges::find(set.ranks, a.on->nodes->ranks[node]) == set.ranks.end())
        refuse("reflect of ", a.name, " in a task that not all nodes of ", a.on->nodes->name,
               " execute; do it outside of the task");
  }
}

/// Adds the sends and receives of one array. Both ends number the boxes of a receiver alike. Gives how many
/// operations were added.
int add_array(peerway::PlanBuilder& builder, const pwx_array& a, int number, const ReflectAsk& asked) {
  const pwx_nodes& nodes = *a.on->nodes;
  const peerway::Region& memory = asked.acc() ? *present(a, "reflect").region : a.state->memory;
  const Widths widths = widths_of(asked, a);
  int added = 0;
  for (int receiver = 0; receiver < nodes.total; ++receiver) {
    const int to = nodes.ranks[receiver];
    int tag = number;
    for (const Box& box : needs_of(a, receiver, widths, !asked.orthogonal())) {
      const int from = nodes.ranks[box.owner];
      const bool mine = to == program().rank() || from == program().rank();
      for (const BlockPair& block : mine ? blocks_of(a, box, receiver) : std::vector<BlockPair>{}) {
        if (from == program().rank()) builder.send(to, tag, memory.block(block.from));
        if (to == program().rank()) builder.receive(from, tag, memory.block(block.to));
        tag += asked.count;
        ++added;
      }
      // Both ends of a box go on with the same tag, and others do not use it.
      if (!mine) tag += asked.count * static_cast<int>(blocks_of(a, box, receiver).size());
    }
  }
  return added;
}

/// Are the arrays' nodes those that execute, so that all of them count the same writes?
bool alike_everywhere(const ReflectAsk& asked, const Set& set) {
  return std::all_of(asked.arrays, asked.arrays + asked.count, [&](const pwx_array* a) {
    const pwx_nodes& nodes = *a->on->nodes;
    return nodes.total == set.size() && std::all_of(nodes.ranks, nodes.ranks + nodes.total, [&](int rank) {
             return std::ranges::find(set.ranks, rank) != set.ranks.end();
           });
  });
}

std::unique_ptr<Reflect> made(const ReflectAsk& asked, const Set& set) {
  check_asked(asked, set);
  auto entry = std::make_unique<Reflect>();
  for (int i = 0; i < asked.count; ++i) entry->arrays.push_back(asked.arrays[i]->state->id);
  if (asked.widths != nullptr) entry->widths.assign(asked.widths, asked.widths + asked.arrays[0]->ndims);
  for (int i = 0; i < asked.count && asked.acc(); ++i)
    entry->copies.push_back(present(*asked.arrays[i], "reflect").id);
  entry->orthogonal = asked.orthogonal();
  entry->set = &set;
  entry->alike = alike_everywhere(asked, set);
  for (int i = 0; i < asked.count; ++i) entry->brought.push_back(widths_of(asked, *asked.arrays[i]));
  entry->names = names_of(asked);
  peerway::PlanBuilder builder =
      program().context.plan(asked.acc() ? peerway::cuda(the_gpu().ordinal) : peerway::host);
  int added = 0;
  for (int i = 0; i < asked.count; ++i)
    if (asked.arrays[i]->on->nodes->member != 0) added += add_array(builder, *asked.arrays[i], i, asked);
  peerway::Plan plan = builder.prepare_among(set.ranks);
  if (added > 0) entry->plan.emplace(std::move(plan));
  return entry;
}

Reflected& reflected_of(const pwx_array& a, const ReflectAsk& asked) {
  return a.state->reflected[asked.acc() ? 1 : 0];
}

/// Has nothing written an array since a reflect that brought all that is asked for?
bool unchanged(const pwx_array& a, const ReflectAsk& asked, uint64_t copy) {
  const Reflected& last = reflected_of(a, asked);
  if (a.state->watch != 1 || last.widths.empty() || last.copy != copy || last.writes != writes_of(*a.state) ||
      (last.orthogonal && !asked.orthogonal()))
    return false;
  const Widths wanted = widths_of(asked, a);
  return std::equal(last.widths.begin(), last.widths.end(), wanted.begin(),
                    [](const pwx_width& there, const pwx_width& one) {
                      return there.lo >= one.lo && there.hi >= one.hi &&
                             ((one.lo == 0 && one.hi == 0) || (there.periodic != 0) == (one.periodic != 0));
                    });
}

bool same_width(const pwx_width& a, const pwx_width& b) {
  return a.lo == b.lo && a.hi == b.hi && (a.periodic != 0) == (b.periodic != 0);
}

bool is_for(const Reflect& entry, const ReflectAsk& asked, const Set& set) {
  if (entry.stale || entry.set != &set || entry.orthogonal != asked.orthogonal() ||
      entry.arrays.size() != static_cast<size_t>(asked.count) ||
      entry.widths.empty() != (asked.widths == nullptr) || entry.copies.empty() == asked.acc())
    return false;
  for (size_t i = 0; i < entry.arrays.size(); ++i)
    if (asked.arrays[i]->state == nullptr || asked.arrays[i]->state->id != entry.arrays[i]) return false;
  for (size_t i = 0; i < entry.copies.size(); ++i)
    if (const Present* copy = find_present(*asked.arrays[i]); copy == nullptr || copy->id != entry.copies[i])
      return false;
  return entry.widths.empty() ||
         std::equal(entry.widths.begin(), entry.widths.end(), asked.widths, same_width);
}

}  // namespace
}  // namespace pwx

/// Of one place in the text: all that it was called with so far, the last first.
struct pwx_halo_state {
  std::vector<std::unique_ptr<pwx::Reflect>> entries;
};

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_halo_state>>& halos() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_halo_state>>;  // outlives atexit
  return all;
}

std::map<long, std::vector<Reflect*>>& asynchronous() {
  static auto& all = *new std::map<long, std::vector<Reflect*>>;  // outlives atexit
  return all;
}

Reflect& entry_of(pwx_halo& halo, const ReflectAsk& asked) {
  const Set& set = program().executing();
  if (halo.state == nullptr) halo.state = halos().emplace_back(std::make_unique<pwx_halo_state>()).get();
  auto& entries = halo.state->entries;
  const auto known = std::ranges::find_if(entries, [&](const auto& one) { return is_for(*one, asked, set); });
  if (known == entries.begin() && known != entries.end()) return **known;
  if (known != entries.end()) {
    std::rotate(entries.begin(), known, known + 1);
    return *entries.front();
  }
  std::erase_if(entries, [](const auto& one) { return one->stale && !one->under_way; });
  return **entries.insert(entries.begin(), made(asked, set));
}

void start(Reflect& entry, const ReflectAsk& asked) {
  if (entry.under_way)
    refuse("reflect of ", entry.names, " while the one before is under way; use wait_async first");
  entry.idle = entry.alike;
  for (size_t i = 0; i < entry.arrays.size() && entry.idle; ++i)
    entry.idle = unchanged(*asked.arrays[i], asked, entry.copies.empty() ? 0 : entry.copies[i]);
  entry.states.clear();
  entry.writes.clear();
  for (size_t i = 0; i < entry.arrays.size() && !entry.idle; ++i) {
    entry.states.push_back(asked.arrays[i]->state);
    entry.writes.push_back(writes_of(*asked.arrays[i]->state));
  }
  if (entry.plan && !entry.idle)
    peerway::check(entry.copies.empty() ? entry.plan->start()
                                        : entry.plan->start(peerway_stream(PWX_QUEUE_SYNC)));
  entry.under_way = true;
}

void finish(Reflect& entry) {
  entry.under_way = false;
  if (entry.idle) return;
  if (entry.plan)
    peerway::check(entry.copies.empty() ? entry.plan->finish()
                                        : entry.plan->finish(peerway_stream(PWX_QUEUE_SYNC)));
  for (size_t i = 0; i < entry.states.size(); ++i) {
    const bool acc = !entry.copies.empty();
    Reflected& last = entry.states[i]->reflected[acc ? 1 : 0];
    const auto& widths = entry.brought[i];
    last.widths.assign(widths.begin(), widths.begin() + entry.states[i]->shape.ndims);
    last.orthogonal = entry.orthogonal;
    last.copy = acc ? entry.copies[i] : 0;
    last.writes = entry.writes[i];
  }
}

/// What reflect_init asked for of each array.
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
  const auto found = inits().find(allocated(a, "reflect_do").id);
  if (found == inits().end()) refuse("reflect_do of ", a.name, " without a reflect_init before; add one");
  return found->second;
}

ReflectAsk asked_by(const Persistent& init, int count, pwx_array* const* arrays) {
  return {count, arrays, init.widths.empty() ? nullptr : init.widths.data(), init.flags};
}

bool alike(const Persistent& a, const Persistent& b) {
  return a.flags == b.flags && std::ranges::equal(a.widths, b.widths, same_width);
}

/// All at once where reflect_init asked for the same of all.
void reflect_do(int count, pwx_array* const* arrays) {
  const Persistent& first = init_of(*arrays[0]);
  const bool together =
      std::all_of(arrays, arrays + count, [&](const pwx_array* a) { return alike(init_of(*a), first); });
  std::vector<ReflectAsk> asks;
  if (together) asks.push_back(asked_by(first, count, arrays));
  for (int i = 0; i < count && !together; ++i) asks.push_back(asked_by(init_of(*arrays[i]), 1, arrays + i));
  std::vector<Reflect*> entries;
  for (const ReflectAsk& asked : asks) entries.push_back(&entry_of(persistent, asked));
  for (size_t i = 0; i < asks.size(); ++i) start(*entries[i], asks[i]);
  for (Reflect* entry : entries) finish(*entry);
}

}  // namespace

namespace {

/// Plans over memory that ends: those whose list has the id.
void end_plans(std::vector<uint64_t> Reflect::* ids, uint64_t id) {
  for (const auto& halo : halos())
    for (const auto& entry : halo->entries) {
      if (std::ranges::find((*entry).*ids, id) == ((*entry).*ids).end()) continue;
      if (entry->under_way) refuse("an array is freed while a reflect of ", entry->names, " is under way");
      entry->stale = true;
      entry->plan.reset();
    }
}

}  // namespace

void forget_halos_of(uint64_t array_id) {
  inits().erase(array_id);
  end_plans(&Reflect::arrays, array_id);
}

void forget_halos_of_present(uint64_t id) { end_plans(&Reflect::copies, id); }

void free_halos() {
  asynchronous().clear();
  inits().clear();
  for (const auto& halo : halos()) halo->entries.clear();
}

}  // namespace pwx

extern "C" {

void pwx_reflect_start(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                       int flags, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const pwx::ReflectAsk asked{count, arrays, widths, flags};
    pwx::start(pwx::entry_of(*halo, asked), asked);
  });
}

void pwx_reflect_finish(pwx_halo* halo, const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (halo->state == nullptr || !halo->state->entries.front()->under_way)
      pwx::refuse("the end of a reflect that was not started");
    pwx::finish(*halo->state->entries.front());
  });
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
  pwx::guarded(where, [&] {
    const pwx::ReflectAsk asked{count, arrays, widths, flags};
    pwx::Reflect& entry = pwx::entry_of(*halo, asked);
    pwx::start(entry, asked);
    pwx::finish(entry);
  });
}

void pwx_reflect_async(pwx_halo* halo, int count, pwx_array* const* arrays, const pwx_width* widths,
                       int flags, long id, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const pwx::ReflectAsk asked{count, arrays, widths, flags};
    pwx::Reflect& entry = pwx::entry_of(*halo, asked);
    pwx::start(entry, asked);
    pwx::asynchronous()[id].push_back(&entry);
  });
}

void pwx_wait_async(long id, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const auto found = pwx::asynchronous().find(id);
    if (found == pwx::asynchronous().end()) return;  // of what was complete when its directive returned
    for (pwx::Reflect* entry : found->second) pwx::finish(*entry);
    pwx::asynchronous().erase(found);
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
    pwx::entry_of(pwx::persistent, {count, arrays, widths, flags});
  });
}

void pwx_reflect_do(int count, pwx_array* const* arrays, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::reflect_do(count, arrays); });
}

}  // extern "C"
