// A collective gmove with acc. If both sides are on the GPU, it is a plan, which sends each element directly
// to its place, in the order of the program's work; else both sides go through the host's memory.
#include "xacc/runtime/gmove/on_gpus.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "peerway/xacc/acc.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gmove/assignment.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/sequences.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

namespace pwx {

/// The most blocks that a rank sends or receives in a plan: a section of a cyclic array can have one for each
/// element.
constexpr size_t kMostBlocks = 4096;
/// The plans that a directive keeps; one whose sections change each time makes new ones.
constexpr size_t kMostPlans = 8;

/// A gmove that ran before, and its plan.
struct GmovePlan {
  const Set* set;
  pwx_section target, source;
  uint64_t target_copy, source_copy;    ///< ids of the copies on the GPU; 0: the side is in host memory
  uint64_t target_life, source_life;    ///< of local arrays: their memory may be kept by this rank alone
  std::vector<uint64_t> arrays{};       ///< ids
  long number = 0;                      ///< among the plans of the set, equal on all ranks
  bool through_host = false;            ///< the ranks have agreed that no plan can do it
  std::optional<peerway::Plan> plan{};  ///< none if this rank has nothing to transfer
};

}  // namespace pwx

/// One gmove in the text: the plans of its last calls, in the order in which they were made.
struct pwx_gmove_plans_state {
  std::vector<std::unique_ptr<pwx::GmovePlan>> plans;
};

namespace pwx {
namespace {

std::vector<std::unique_ptr<pwx_gmove_plans_state>>& gmoves() {
  static auto& all = *new std::vector<std::unique_ptr<pwx_gmove_plans_state>>;  // outlives atexit
  return all;
}

size_t bytes_of(const pwx_section& local) {
  size_t bytes = local.element_bytes;
  for (int d = 0; d < local.ndims; ++d) bytes *= static_cast<size_t>(std::max(0L, local.extent[d]));
  return bytes;
}

/// The copy of a side, or null. A distributed array must be present; a local one that is not is taken in host
/// memory.
const Present* copy_of(const pwx_section& side) {
  if (side.array != nullptr) return &present(*side.array, "gmove");
  if (side.ndims == 0 || bytes_of(side) == 0) return nullptr;
  return find_present(side.base, bytes_of(side), "a local array of gmove");
}

/// The address on the GPU of what is at a side's base.
const std::byte* base_on_gpu(const pwx_section& side, const Present& copy) {
  const std::byte* const base = side.array != nullptr ? copy.host : static_cast<const std::byte*>(side.base);
  return copy.device + (base - copy.host);
}

bool same_section(const pwx_section& a, const pwx_section& b) {
  const auto same_triplet = [](const pwx_triplet& of_a, const pwx_triplet& of_b) {
    return of_a.first == of_b.first && of_a.count == of_b.count && of_a.step == of_b.step &&
           of_a.is_index == of_b.is_index;
  };
  return a.array == b.array && a.base == b.base && a.element_bytes == b.element_bytes && a.ndims == b.ndims &&
         std::equal(a.extent, a.extent + a.ndims, b.extent) &&
         std::equal(a.dim, a.dim + a.ndims, b.dim, same_triplet);
}

uint64_t life_of(const pwx_section& side) {
  return side.array != nullptr && side.array->state->local ? side.array->state->life : 0;
}

bool is_for(const GmovePlan& known, const GmovePlan& wanted) {
  return known.set == wanted.set && known.target_copy == wanted.target_copy &&
         known.source_copy == wanted.source_copy && known.target_life == wanted.target_life &&
         known.source_life == wanted.source_life && same_section(known.target, wanted.target) &&
         same_section(known.source, wanted.source);
}

/// A send to another rank, a receive from it, or both from this rank to itself.
struct Transfer {
  int to, from, tag;
  BlockPair blocks;
};

/// What this rank transfers. Each pair of ranks numbers its blocks in the same order.
std::vector<Transfer> transfers_of(const Assignment& assignment) {
  const int me = program().rank();
  std::vector<Transfer> transfers;
  assignment.check_views();
  assignment.each_pair(
      {true, true, "do it outside of the task, or as gmove in or out"},
      [&](int to, int from) { return to == me || from == me; },
      [&](int to, int from, const Owned& wanted, const Owned& given, const Move& move) {
        int tag = 0;
        for (const BlockPair& blocks :
             blocks_of(move, assignment.dims, assignment.element_bytes, wanted.base, given.base))
          transfers.push_back({to, from, tag++, blocks});
      });
  return transfers;
}

/// A number that differs if a local array has another shape.
long shape_of(const pwx_section& side) {
  long shape = 0;
  constexpr long kFactor = 31;
  for (int d = 0; side.array == nullptr && d < side.ndims; ++d) shape = shape * kFactor + side.extent[d];
  return shape;
}

/// Whether all ranks can use a plan, and their local arrays have one shape. Collective.
bool all_can(bool this_rank_can, const GmovePlan& gmove, const Set& set) {
  const long target = shape_of(gmove.target), source = shape_of(gmove.source);
  long least[] = {this_rank_can ? 1L : 0L, target, -target, source, -source};
  reduce(program(), set, combine_of(PWX_MIN, PWX_LONG), least, std::size(least), sizeof least[0]);
  return least[0] == 1 && least[1] == -least[2] && least[3] == -least[4];
}

/// Whether a plan may be able to do a gmove, as far as all ranks know it alike: both sides are on the GPU,
/// and of two arrays, and each element goes to one place of another rank.
bool may_have_plan(int sides, const pwx_section& target, const pwx_section& source) {
  const auto is_element = [](const pwx_section& side) {
    return std::all_of(side.dim, side.dim + side.ndims, [](const pwx_triplet& t) { return t.is_index != 0; });
  };
  return sides == (PWX_LEFT_ON_GPU | PWX_RIGHT_ON_GPU) && target.array != source.array &&
         (!is_element(source) || is_element(target));
}

/// Whether the two sides share memory of the GPU: an array's address may be that of the local side.
bool overlap(const pwx_section& target, const Present& to, const pwx_section& source, const Present& from) {
  const auto bytes = [](const pwx_section& side, const Present& copy) {
    return side.array != nullptr ? copy.bytes : bytes_of(side);
  };
  const std::byte *to_first = base_on_gpu(target, to), *from_first = base_on_gpu(source, from);
  return to_first < from_first + bytes(source, from) && from_first < to_first + bytes(target, to);
}

/// Prepares the plan, if all ranks can use one. Collective. What was recorded before is launched, because
/// another rank may have launched its part of it already, and wait.
void prepare(GmovePlan& gmove, const Present* target, const Present* source) {
  launch_recorded();
  const Assignment assignment(gmove.target, gmove.source);
  const std::vector<Transfer> transfers = transfers_of(assignment);
  const bool can = target != nullptr && source != nullptr && transfers.size() <= kMostBlocks &&
                   !overlap(gmove.target, *target, gmove.source, *source);
  gmove.number = ++gmove.set->plans;
  gmove.through_host = !all_can(can, gmove, *gmove.set);
  if (gmove.through_host || (transfers.empty() && gmove.set->size() == 1)) return;
  const int me = program().rank();
  const OnGpu at_target = region_on_gpu(base_on_gpu(gmove.target, *target)),
              at_source = region_on_gpu(base_on_gpu(gmove.source, *source));
  peerway::PlanBuilder builder = program().context.plan(the_gpu().device());
  for (const Transfer& transfer : transfers) {
    pw_block from = transfer.blocks.from, to = transfer.blocks.to;
    from.offset += at_source.offset, to.offset += at_target.offset;
    if (transfer.from == me) builder.send(transfer.to, transfer.tag, at_source.region->block(from));
    if (transfer.to == me) builder.receive(transfer.from, transfer.tag, at_target.region->block(to));
  }
  peerway::Plan plan = builder.prepare_among(gmove.set->ranks);
  if (!transfers.empty()) gmove.plan.emplace(std::move(plan));
}

/// Whether all ranks have the same plan from an earlier call. Collective. The copies of local arrays are
/// known to their ranks only.
bool agreed_on(const GmovePlan* known, const Set& set) {
  return agree(program(), set, known == nullptr ? 0 : known->number);
}

using Plans = std::vector<std::unique_ptr<GmovePlan>>;

/// Ends plans.
template <typename Concerns>
void end_plans(Plans& plans, const Concerns& concerns) {
  const auto ends = [&](const auto& plan) { return concerns(*plan); };
  if (std::ranges::any_of(plans, [&](const auto& plan) { return plan->plan && ends(plan); })) {
    launch_recorded();
    wait_for_unqueued();
    forget_graphs();
  }
  std::erase_if(plans, ends);
}

/// The plan of a gmove, made when it first comes with these arrays, copies and sections. All ranks make and
/// end the plans of a directive in the same order.
GmovePlan& plan_of(pwx_gmove_plans& directive, const pwx_section& target, const pwx_section& source) {
  const Present *to = copy_of(target), *from = copy_of(source);
  auto wanted = std::make_unique<GmovePlan>(
      GmovePlan{&program().executing(), target, source, to == nullptr ? 0 : to->id,
                from == nullptr ? 0 : from->id, life_of(target), life_of(source)});
  if (directive.state == nullptr)
    directive.state = gmoves().emplace_back(std::make_unique<pwx_gmove_plans_state>()).get();
  Plans& plans = directive.state->plans;
  const auto place = std::ranges::find_if(plans, [&](const auto& plan) { return is_for(*plan, *wanted); });
  GmovePlan* const known = place == plans.end() ? nullptr : place->get();
  const bool has_local = target.array == nullptr || source.array == nullptr;
  if (has_local ? agreed_on(known, *wanted->set) : known != nullptr) return *known;
  end_plans(plans, [&](const GmovePlan& plan) { return &plan == known; });
  const GmovePlan* const oldest = plans.size() < kMostPlans ? nullptr : plans.front().get();
  end_plans(plans, [&](const GmovePlan& plan) { return &plan == oldest; });
  for (const pwx_section* side : {&target, &source})
    if (side->array != nullptr) wanted->arrays.push_back(side->array->state->id);
  prepare(*wanted, to, from);
  return *plans.emplace_back(std::move(wanted));
}

/// Copies a side from the GPU, or back, if it is present.
void update_side(const pwx_section& side, bool to_host, const pwx_where* where) {
  pwx_data data{PWX_DATA_PRESENT, "a local array of gmove", nullptr, side.base, bytes_of(side)};
  if (side.array != nullptr)
    data = {PWX_DATA_PRESENT, side.array->name, const_cast<pwx_array*>(side.array), nullptr, 0};
  (to_host ? pwx_update_host : pwx_update_device)(1, &data, 1, PWX_QUEUE_SYNC, where);
}

/// Elements that the gmove does not write are copied back unchanged.
void move_through_host(int sides, const pwx_section& target, const pwx_section& source,
                       const pwx_where* where) {
  const bool target_on_gpu = (sides & PWX_LEFT_ON_GPU) != 0, source_on_gpu = (sides & PWX_RIGHT_ON_GPU) != 0;
  if (source_on_gpu && source.ndims > 0) update_side(source, true, where);
  if (source_on_gpu && source.array != nullptr) pwx_written(source.array);  // the host's, with its halos
  if (target_on_gpu) update_side(target, true, where);
  pwx_gmove(PWX_COLLECTIVE, &target, &source, where);
  if (target_on_gpu) update_side(target, false, where);
}

/// Ends the plans of all directives for which `concerns` is true, since their memory ends.
template <typename Concerns>
void end_all_plans(const Concerns& concerns) {
  for (const auto& directive : gmoves()) end_plans(directive->plans, concerns);
}

void forget_gmoves_of(uint64_t array) {
  end_all_plans(
      [&](const GmovePlan& plan) { return std::ranges::find(plan.arrays, array) != plan.arrays.end(); });
}

void forget_gmoves_of_copy(uint64_t copy) {
  end_all_plans([&](const GmovePlan& plan) { return plan.target_copy == copy || plan.source_copy == copy; });
}

const bool notified = (notify_array_user({forget_gmoves_of, forget_gmoves_of, forget_gmoves_of_copy}), true);

}  // namespace

void free_gmove_plans() {
  forget_graphs();
  for (const auto& directive : gmoves()) directive->plans.clear();
}

}  // namespace pwx

extern "C" {

void pwx_gmove_device(pwx_gmove_plans* plans, int sides, const pwx_section* target, const pwx_section* source,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    if (pwx::gpu() == nullptr) return pwx_gmove(PWX_COLLECTIVE, target, source, where);
    if (target->array != nullptr) pwx_written(target->array);
    pwx::GmovePlan* const gmove =
        pwx::may_have_plan(sides, *target, *source) ? &pwx::plan_of(*plans, *target, *source) : nullptr;
    if (gmove == nullptr || gmove->through_host)
      pwx::move_through_host(sides, *target, *source, where);
    else if (gmove->plan)
      pwx::run_in_order(*gmove->plan);
  });
}

}  // extern "C"
