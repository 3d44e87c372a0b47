// The copy kernels: block-strided copies of words of 16, 8, 4, 2 and 1 bytes between memories that the GPU
// can address (its own, a peer's over NVLink, pinned host memory), with a signal after the data in the same
// launch.

#include "copy_arguments.h"

namespace pw::cuda {

// Called after all of a block's copies: the last block to arrive stores the signal. Each block's fence orders
// its copies before its count, and the last block's fence orders all counts, and so all copies, before the
// signal. Order is transitive across scopes, so only the fence before the signal needs system scope.
__device__ inline void notify(const CopyArguments& arguments) {
  if (arguments.signal == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    peerway::device::detail::fence_on_gpu();
    const unsigned last = gridDim.x - 1;
    if (atomicInc(arguments.finished, last) != last)
      return;  // for the last block this resets the counter to
               // zero
  }
  peerway::device::detail::fence();
  peerway::device::detail::store_relaxed(arguments.signal, arguments.value);
}

template <typename Unit>
__device__ inline void copy_and_notify(const CopyArguments& arguments) {
  const peerway::device::StridedCopy& copy = arguments.copy;
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  peerway::device::detail::copy_edges(
      copy, copy.to, copy.from, static_cast<unsigned long long>(copy.words) * sizeof(Unit), thread, threads);
  peerway::device::detail::OpenTarget to{copy.to};
  peerway::device::detail::copy_words(peerway::device::detail::WordsOf<Unit>(), copy, to, copy.from, 0,
                                      copy.words, thread, threads);
  notify(arguments);
}

}  // namespace pw::cuda

#define PW_COPY_KERNEL(name, Unit)                                       \
  extern "C" __global__ void __launch_bounds__(pw::cuda::kThreads)       \
      name(const PW_KERNEL_CONSTANT pw::cuda::CopyArguments arguments) { \
    pw::cuda::copy_and_notify<Unit>(arguments);                          \
  }

PW_COPY_KERNEL(pw_copy_16, uint4)
PW_COPY_KERNEL(pw_copy_8, unsigned long long)
PW_COPY_KERNEL(pw_copy_4, unsigned)
PW_COPY_KERNEL(pw_copy_2, unsigned short)
PW_COPY_KERNEL(pw_copy_1, unsigned char)
