// The parameters of the plan kernels. Compiled by the host compiler and by NVRTC: plain types only.
#pragma once

#include "packet_pieces.h"

namespace pw::cuda {

constexpr unsigned kPlanThreads = 256;  // of a block, at most

// Pieces `first` to `last` of a plan.
struct PlanHead {
  const void* in_memory;  // the table, where it does not come as parameters
  unsigned first;
  unsigned last;
  peerway::device::Word* epoch;
  pw_guard guard;
  peerway::device::StepTimes* times;  // null: the plan is not traced
  unsigned part;                      // as StepRecord has it
};

// A short table comes as parameters, which the first instruction finds in the constant cache. A launch costs
// the host the more the more parameters there are, so there are two lengths of each.
template <typename Entry, unsigned Entries>
struct PlanArguments {
  PlanHead head;
  Entry entry[Entries];
};
using FewSteps = PlanArguments<peerway::device::Step, 2>;
using SomeSteps = PlanArguments<peerway::device::Step, 12>;
using FewPieces = PlanArguments<PacketPiece, 2>;
using SomePieces = PlanArguments<PacketPiece, 16>;
static_assert(sizeof(SomeSteps) <= 4096 && sizeof(SomePieces) <= 4096, "the parameters of a kernel");

// Ends by itself where the host does not go on.
PW_ON_DEVICE void answer_clock(peerway::device::Word* words, unsigned rounds) {
  namespace gpu = peerway::device::detail;
  constexpr peerway::device::Word kPatience = 100000000;  // ns
  for (unsigned round = 1; round <= rounds; ++round) {
    const peerway::device::Word began = gpu::clock_ns();
    while (gpu::load_acquire(words) < round)
      if (gpu::clock_ns() - began > kPatience) return;
    gpu::store_relaxed(words + 16, gpu::clock_ns());
    gpu::store_release(words + 32, round);
  }
}

}  // namespace pw::cuda
