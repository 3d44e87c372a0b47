// The kernel that combines the operands of several ranks, once they have all arrived.

#include "reduce_arguments.h"

extern "C" __global__ void __launch_bounds__(pw::cuda::kReduceThreads)
    pw_reduce(const PW_KERNEL_CONSTANT pw::cuda::ReduceArguments passed) {
  using namespace pw::cuda;
  const ReduceArguments& arguments = in_place(passed);
  InOrder()();
  const peerway::device::Block block;
  if (!block.all(none_cancelled(arguments, block.index(), block.count()))) return;
  reduce(arguments, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
