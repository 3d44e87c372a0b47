// The parameters of the kernel that combines the operands of several ranks. Compiled by the host compiler and
// by NVRTC: plain types only.
#pragma once

#include "peerway/device/element.cuh"
#include "peerway/device/step.cuh"

namespace pw::cuda {

constexpr unsigned kReduceThreads = 256;

struct ReduceArguments {
  peerway::device::Reduction reduction;
  unsigned wide;  // 1: all addresses are multiples of 16 bytes
  // The epochs of the pieces whose data is combined. If one of them was cancelled, nothing is stored.
  const peerway::device::Word* epochs;
  unsigned pieces;
};

// Returns whether no piece that this thread looks at was cancelled.
PW_ON_DEVICE bool none_cancelled(const ReduceArguments& arguments, unsigned thread, unsigned threads) {
  bool none = true;
  for (unsigned piece = thread; piece < arguments.pieces; piece += threads)
    none = none && (peerway::device::detail::load_relaxed(arguments.epochs + piece) &
                    peerway::device::kCancelled) == 0;
  return none;
}

// Combines a thread's share of the elements.
struct ReduceShare {
  const ReduceArguments& arguments;
  peerway::device::Word thread, threads;

  template <class T, peerway::device::Combine how>
  PW_ON_DEVICE void run() const {
    namespace gpu = peerway::device::detail;
    if (arguments.wide != 0)
      gpu::reduce_share<T, how, 16 / sizeof(T)>(arguments.reduction, thread, threads);
    else
      gpu::reduce_share<T, how, 1>(arguments.reduction, thread, threads);
  }
};

// Combines a thread's share of elements of any type.
PW_ON_DEVICE void reduce(const ReduceArguments& arguments, unsigned thread, unsigned threads) {
  peerway::device::detail::run_typed(arguments.reduction.element, arguments.reduction.combine,
                                     ReduceShare{arguments, thread, threads});
}

}  // namespace pw::cuda
