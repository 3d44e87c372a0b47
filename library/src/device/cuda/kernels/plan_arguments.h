// The parameters of the plan kernels. Compiled by the host compiler and by NVRTC: plain types only.
#pragma once

#include "messages.h"

namespace pw::cuda {

// The largest number of threads per block. More threads make lines of large messages faster, but no other
// kind of step.
constexpr unsigned kPlanThreads = 256;
constexpr unsigned kLineThreads = 512;

// Pieces `first` to `last` of a plan.
struct PlanHead {
  const void* steps;  // table in device memory, if it is not in the parameters
  unsigned first;
  unsigned last;
  peerway::device::Word* epoch;
  pw_guard guard;
  peerway::device::StepTimes* times;     // null: the plan is not traced
  unsigned part;                         // see StepRecord::part
  peerway::device::Condition condition;  // nothing is done unless it is met
};

// A short table is passed in the parameters, which the first instruction finds in the constant cache. A
// launch costs the host more with more parameters, so there are two lengths of each.
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
  unsigned ends[Messages];  // for each message, one past the number of its last piece
  PlanMessage entry[Messages];
};
using FewMessages = MessageArguments<2>;
using SomeMessages = MessageArguments<16>;
static_assert(sizeof(SomeSteps) <= 4096 && sizeof(SomeMessages) <= 4096, "the parameters of a kernel");

// Returns after a timeout if the host does not continue.
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
