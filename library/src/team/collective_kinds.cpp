#include "team/collective_kinds.h"

#include "base/format.h"

namespace pw {

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::barrier:
      return "barrier";
    case Collective::all_gather:
    case Collective::parts:
      return "all_gather";
    case Collective::context:
      return "creation of a context";
    case Collective::plan:
      return "prepare of a plan";
    case Collective::halo:
      return "creation of a halo";
    case Collective::halo_extents:
      return "creation of a halo in Python";
    case Collective::collective:
      return "creation of a collective";
    case Collective::plan_among:
      return "prepare_among of a plan";
    case Collective::collective_among:
      return "creation of a collective of some ranks";
  }
  return "collective";
}

std::string name_of(const CollectiveCall& call) {
  switch (call.kind) {
    case Collective::all_gather:
      return format("all_gather of {} bytes", call.bytes);
    case Collective::parts:
      return format("all_gather of {} bytes with lengths that may differ", call.bytes);
    default:
      return name_of(call.kind);
  }
}

const char* action_of(Collective kind) {
  switch (kind) {
    case Collective::context:
      return "make its context";
    case Collective::plan:
    case Collective::plan_among:
      return "prepare its plan";
    case Collective::halo:
    case Collective::halo_extents:
      return "make this halo";
    case Collective::collective:
    case Collective::collective_among:
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
