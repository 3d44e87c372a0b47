// The kernel that begins a round: it combines the operands of several ranks, once they have all arrived. It
// is compiled for one type and one operation at a time, when a plan first needs them: all together would take
// longer than the rest.

#include "begin.h"
#include "reduce_arguments.h"

#if !defined(PW_ELEMENT)
#define PW_ELEMENT peerway::device::Element::bfloat16
#define PW_COMBINE peerway::device::Combine::sum
#endif

extern "C" __global__ void __launch_bounds__(pw::cuda::kReduceThreads)
    pw_reduce(const PW_KERNEL_CONSTANT pw::cuda::ReduceArguments passed) {
  using namespace pw::cuda;
  const ReduceArguments& arguments = in_place(passed);
  if (!is_met(arguments.condition)) return;
  InOrder()();
  const peerway::device::Block block;
  if (!block.all(none_cancelled(arguments, block.index(), block.count()))) {
    if (blockIdx.x == 0) cancel_round(arguments, block.index(), block.count());
    return;
  }
  using Type = peerway::device::detail::TypeOf<static_cast<peerway::device::Element>(PW_ELEMENT)>::Type;
  ReduceShare{arguments, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x}
      .run<Type, static_cast<peerway::device::Combine>(PW_COMBINE)>();
}
