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
  // The epochs of the pieces before the reduction, and after them those of the pieces of its round. If one of
  // the former was cancelled, nothing is combined, and the latter are cancelled: they must not send what is
  // wrong.
  peerway::device::Word* epochs;
  unsigned before, after;
  peerway::device::Condition condition;  // nothing is done unless it is met
};

// Returns whether no piece before the reduction was cancelled, of those that this thread looks at.
PW_ON_DEVICE bool none_cancelled(const ReduceArguments& arguments, unsigned thread, unsigned threads) {
  bool none = true;
  for (unsigned piece = thread; piece < arguments.before; piece += threads)
    none = none && (peerway::device::detail::load_relaxed(arguments.epochs + piece) &
                    peerway::device::kCancelled) == 0;
  return none;
}

PW_ON_DEVICE void cancel_round(const ReduceArguments& arguments, unsigned thread, unsigned threads) {
  for (unsigned piece = thread; piece < arguments.after; piece += threads)
    peerway::device::detail::set_bits(arguments.epochs + arguments.before + piece,
                                      peerway::device::kCancelled);
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
