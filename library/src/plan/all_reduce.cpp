// The handle with which kernels combine the elements of an all-reduce: the lanes of its plan.
#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/status.h"
#include "peerway/handles.h"
#include "plan/plan.h"

namespace pw {
namespace {

// In a one-shot all-reduce each other member gets this rank's whole operand. (In a reduce-scatter it gets
// another part than this rank combines.)
bool is_one_shot_all_reduce(const PlanOperations& operations) {
  if (operations.reductions().size() != 1) return false;
  const unsigned char* const operand = operations.reductions().front().reduction.local;
  return std::ranges::all_of(operations.sends(), [&](const LaneEnd& send) {
    const std::byte* const from = send.region->address() + send.block.offset;
    return send.round == 0 && reinterpret_cast<const unsigned char*>(from) == operand;
  });
}

pw_status refuse_units(const pw_lane_handle& lane) {
  return fail(
      PW_UNSUPPORTED,
      format("the packets with rank {} carry {} bytes, those with other ranks another number; a kernel "
             "needs arrays that are aligned alike at all ranks",
             lane.rank, lane.unit));
}

}  // namespace

pw_status Plan::all_reduce(pw_all_reduce_handle& handle) {
  pw_plan_handle whole{};
  if (const pw_status status = give_to_kernels(whole); status != PW_OK) return status;
  if (!is_one_shot_all_reduce(operations_))
    return fail(
        PW_UNSUPPORTED,
        format("kernels combine the elements of a one-shot all-reduce, and this plan is \"{}\". Where "
               "an all-reduce is two-shot, set PEERWAY_COLLECTIVE_METHOD=one-shot at the first rank of "
               "its group",
               operations_.title()));
  const peerway::device::Reduction& reduction = operations_.reductions().front().reduction;
  if (reduction.sources > PW_KERNEL_MEMBERS)
    return fail(PW_UNSUPPORTED, format("{} ranks; kernels combine the elements of at most {}",
                                       reduction.sources, PW_KERNEL_MEMBERS));
  const uint64_t bytes = operations_.reductions().front().bytes;
  handle = {};
  handle.version = PW_HANDLE_VERSION;
  handle.unit = bytes % 8 == 0 ? 8 : 4;
  handle.members = reduction.sources;
  handle.own = reduction.own;
  handle.slot_bytes = 2 * bytes;
  handle.guard = whole.guard;
  unsigned member = 0, unit = 0;  // a rank that is alone has no packets, so any unit will do
  for (const LaneEnd& send : operations_.sends()) {
    if (member == reduction.own) ++member;
    pw_lane_handle to{}, from{};
    if (const pw_status status = lane(true, send.rank, send.tag, to); status != PW_OK) return status;
    if (const pw_status status = lane(false, send.rank, send.tag, from); status != PW_OK) return status;
    if ((unit != 0 && to.unit != unit) || from.unit != to.unit) return refuse_units(to);
    handle.unit = unit = to.unit;
    handle.slot_bytes = to.slot_bytes;
    handle.to[member] = to.slots;
    handle.from[member] = from.slots;
    handle.rank[member] = send.rank;
    ++member;
  }
  return PW_OK;
}

}  // namespace pw
