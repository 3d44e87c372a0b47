// One launch for a plan's start, its finish, or both. The pieces of the start come first, so that blocks
// which wait never keep those that send from running.

#include "begin.h"
#include "plan_arguments.h"

namespace pw::cuda {

__device__ inline const PlanHead& head_of(const PlanHead& head) { return head; }
template <class Arguments>
__device__ inline const PlanHead& head_of(const Arguments& arguments) {
  return arguments.head;
}

template <class Run>
__device__ inline void run_traced(const PlanHead& head, Run&& pieces) {
  const peerway::device::Block block;
  if (head.times != nullptr) InOrder()();
  peerway::device::detail::run_timed(block, head.times, head.part, gridDim.x, [&] { pieces(block); });
}

// Reads each line of the step that a block runs first. Parameters are available before the previous work has
// ended, and the first access to each line takes long. Ends the kernel if the table is invalid.
__device__ inline void look_at(const peerway::device::Step& step) {
  using Address = unsigned long long;
  const Address words = reinterpret_cast<Address>(step.wait.word) |
                        reinterpret_cast<Address>(step.mark.word) | reinterpret_cast<Address>(step.finished);
  if (step.pieces == 0 || step.copy.inner_levels > peerway::device::kInnerLevels ||
      (step.copy.head | step.copy.tail) >= 16 || words % sizeof(peerway::device::Word) != 0)
    __trap();
}

__device__ inline void run_steps(const PlanHead& head, const peerway::device::Step* steps) {
  run_traced(head, [&](const peerway::device::Block& block) {
    const peerway::device::Step* step = steps;
    for (unsigned piece = blockIdx.x; piece >= step->pieces; ++step) piece -= step->pieces;
    look_at(*step);
    InOrder()();
    peerway::device::detail::run_pieces(block, steps, head.first, head.last, head.epoch, head.guard,
                                        blockIdx.x, gridDim.x);
  });
}

template <Form form, class Arguments>
__device__ inline void run_messages(const Arguments& plan) {
  const PlanHead& head = plan.head;
  run_traced(head, [&](const peerway::device::Block& block) {
    run_messages<form>(block, plan.entry, plan.ends, head.first, head.last, head.epoch, head.guard,
                       blockIdx.x, gridDim.x, InOrder());
  });
}

}  // namespace pw::cuda

#define PW_PLAN_KERNEL(name, threads, Arguments, body)               \
  extern "C" __global__ void __launch_bounds__(pw::cuda::threads, 1) \
      name(const PW_KERNEL_CONSTANT pw::cuda::Arguments passed) {    \
    using namespace pw::cuda;                                        \
    const Arguments& plan = in_place(passed);                        \
    if (is_met(head_of(plan).condition)) body;                       \
  }

// Answers `rounds` words of the host with the time, for a trace; each word is on its own line.
extern "C" __global__ void pw_plan_clock(peerway::device::Word* words, unsigned rounds) {
  pw::cuda::answer_clock(words, rounds);
}

PW_PLAN_KERNEL(pw_plan_few_steps, kPlanThreads, FewSteps, run_steps(plan.head, plan.entry))
PW_PLAN_KERNEL(pw_plan_some_steps, kPlanThreads, SomeSteps, run_steps(plan.head, plan.entry))
PW_PLAN_KERNEL(pw_plan_many_steps, kPlanThreads, PlanHead,
               run_steps(plan, static_cast<const peerway::device::Step*>(plan.steps)))
PW_PLAN_KERNEL(pw_plan_few_packets, kPlanThreads, FewMessages, run_messages<Form::packets>(plan))
PW_PLAN_KERNEL(pw_plan_some_packets, kPlanThreads, SomeMessages, run_messages<Form::packets>(plan))
PW_PLAN_KERNEL(pw_plan_few_lines, kLineThreads, FewMessages, run_messages<Form::lines>(plan))
PW_PLAN_KERNEL(pw_plan_some_lines, kLineThreads, SomeMessages, run_messages<Form::lines>(plan))
