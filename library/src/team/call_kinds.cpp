#include "team/call_kinds.h"

#include "base/format.h"

namespace pw {

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::barrier:
      return "barrier";
    case CallKind::all_gather:
    case CallKind::parts:
      return "all_gather";
    case CallKind::context:
      return "creation of a context";
    case CallKind::plan:
      return "prepare of a plan";
    case CallKind::halo:
      return "creation of a halo";
    case CallKind::halo_extents:
      return "creation of a halo in Python";
    case CallKind::collective:
      return "creation of a collective";
    case CallKind::plan_among:
      return "prepare_among of a plan";
    case CallKind::collective_among:
      return "creation of a collective of some ranks";
  }
  return "collective";
}

std::string name_of(const CollectiveCall& call) {
  switch (call.kind) {
    case CallKind::all_gather:
      return format("all_gather of {} bytes", call.bytes);
    case CallKind::parts:
      return format("all_gather of {} bytes with lengths that may differ", call.bytes);
    default:
      return name_of(call.kind);
  }
}

const char* action_of(CallKind kind) {
  switch (kind) {
    case CallKind::context:
      return "make its context";
    case CallKind::plan:
    case CallKind::plan_among:
      return "prepare its plan";
    case CallKind::halo:
    case CallKind::halo_extents:
      return "make this halo";
    case CallKind::collective:
    case CallKind::collective_among:
      return "make this collective";
    default:
      return "take part";
  }
}

Error different_calls(int rank, const std::string& call, int other, const std::string& other_call) {
  if (rank > other) return different_calls(other, other_call, rank, call);
  return {PW_INVALID_ARGUMENT,
          format("rank {} is in {} where rank {} is in {}; all ranks must make the same collective calls in "
                 "the same order. After one that failed, either all ranks repeat it or none does",
                 rank, call, other, other_call)};
}

}  // namespace pw
