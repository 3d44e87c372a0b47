// The parameters of the plan kernels. Compiled by the host compiler and by NVRTC: plain types only.
#pragma once

#include "messages.h"

namespace pw::cuda {

// The most threads of a block. With more of them lines of large messages go faster, steps of other kinds do
// not.
constexpr unsigned kPlanThreads = 256;
constexpr unsigned kLineThreads = 512;

// Pieces `first` to `last` of a plan.
struct PlanHead {
  const void* steps;  // in memory: the table, where it does not come as parameters
  unsigned first;
  unsigned last;
  peerway::device::Word* epoch;
  pw_guard guard;
  peerway::device::StepTimes* times;  // null: the plan is not traced
  unsigned part;                      // as StepRecord has it
};

// A short table comes as parameters, which the first instruction finds in the constant cache. A launch costs
// the host the more the more parameters there are, so there are two lengths of each.
template <unsigned Steps>
struct StepArguments {
  PlanHead head;
  peerway::device::Step entry[Steps];
};
using FewSteps = StepArguments<2>;
using SomeSteps = StepArguments<12>;

template <unsigned Messages>
struct MessageArguments {
  PlanHead head;
  unsigned ends[Messages];  // the number after that of each one's last piece
  PlanMessage entry[Messages];
};
using FewMessages = MessageArguments<2>;
using SomeMessages = MessageArguments<16>;
static_assert(sizeof(SomeSteps) <= 4096 && sizeof(SomeMessages) <= 4096, "the parameters of a kernel");

// Ends by itself where the host does not go on.
PW_ON_DEVICE void answer_clock(peerway::device::Word* words, unsigned rounds) {
  namespace gpu = peerway::device::detail;
  constexpr peerway::device::Word kTimeout = 100000000;  // ns
  for (unsigned round = 1; round <= rounds; ++round) {
    const peerway::device::Word began = gpu::clock_ns();
    while (gpu::load_acquire(words) < round)
      if (gpu::clock_ns() - began > kTimeout) return;
    gpu::store_relaxed(words + 16, gpu::clock_ns());
    gpu::store_release(words + 32, round);
  }
}

}  // namespace pw::cuda
