// One launch for a plan's start, its finish, or both: the pieces of the start come first, so that blocks
// which wait never keep those that send from running.

#include "plan_arguments.h"

namespace pw::cuda {

// A launch may be made ready while the work before it ends
// (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).
__device__ inline void in_order() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ inline void run(const PlanHead& head, const peerway::device::Step* steps) {
  in_order();
  const peerway::device::Block block;
  peerway::device::detail::run_timed(block, head.times, head.part, gridDim.x, [&] {
    peerway::device::detail::run_pieces(block, steps, head.first, head.last, head.epoch, head.guard,
                                        blockIdx.x, gridDim.x);
  });
}

__device__ inline void run(const PlanHead& head, const PacketPiece* pieces) {
  in_order();
  const peerway::device::Block block;
  peerway::device::detail::run_timed(block, head.times, head.part, gridDim.x, [&] {
    run_packet_pieces(block, pieces, head.last - head.first, head.epoch + head.first, head.guard, blockIdx.x,
                      gridDim.x);
  });
}

}  // namespace pw::cuda

#define PW_PLAN_KERNEL(name, Arguments)                                   \
  extern "C" __global__ void __launch_bounds__(pw::cuda::kPlanThreads, 1) \
      name(const __grid_constant__ pw::cuda::Arguments plan) {            \
    pw::cuda::run(plan.head, plan.entry);                                 \
  }
#define PW_LONG_PLAN_KERNEL(name, Entry)                                  \
  extern "C" __global__ void __launch_bounds__(pw::cuda::kPlanThreads, 1) \
      name(const __grid_constant__ pw::cuda::PlanHead head) {             \
    pw::cuda::run(head, static_cast<const Entry*>(head.in_memory));       \
  }

// Answers `rounds` words of the host by the time, for a trace; each word has a line of its own.
extern "C" __global__ void pw_plan_clock(peerway::device::Word* words, unsigned rounds) {
  pw::cuda::answer_clock(words, rounds);
}

PW_PLAN_KERNEL(pw_plan_few_steps, FewSteps)
PW_PLAN_KERNEL(pw_plan_some_steps, SomeSteps)
PW_LONG_PLAN_KERNEL(pw_plan_many_steps, peerway::device::Step)
PW_PLAN_KERNEL(pw_plan_few_pieces, FewPieces)
PW_PLAN_KERNEL(pw_plan_some_pieces, SomePieces)
PW_LONG_PLAN_KERNEL(pw_plan_many_pieces, pw::cuda::PacketPiece)
