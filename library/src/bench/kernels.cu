// The kernels of the benchmarks: what an application computes between two messages, alone and with the
// messages in the same kernel.
#include "peerway/device.cuh"

namespace {

using peerway::device::Block;
using peerway::device::Result;

/// Reads and writes each of `count` words once: adds 1 to each of its four numbers. `threads` threads share
/// the words.
__device__ void compute(uint4* words, unsigned long long count, unsigned long long thread,
                        unsigned long long threads) {
  for (unsigned long long i = thread; i < count; i += threads) {
    uint4 word = words[i];
    ++word.x, ++word.y, ++word.z, ++word.w;
    words[i] = word;
  }
}

/// Starts the plan and finishes it; returns false if it was cancelled.
__device__ bool both(const pw_plan_handle& plan) {
  return peerway::device::start(Block{}, plan, blockIdx.x, gridDim.x) == Result::ok &&
         peerway::device::finish(Block{}, plan, blockIdx.x, gridDim.x) == Result::ok;
}

}  // namespace

extern "C" __global__ void bench_compute(uint4* words, unsigned long long count) {
  compute(words, count, (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x,
          (unsigned long long)gridDim.x * blockDim.x);
}

/// `batch` round trips per sample. The leading rank sends first; each rank computes between what it receives
/// and what it sends next. Blocks share the plans' pieces, and each sends its own pieces back once it has
/// received them. `took` receives the cycles of each sample in the first block, and after them the
/// nanoseconds of all samples in the slowest block.
extern "C" __global__ void __launch_bounds__(512)
    bench_ping_pong(const PW_KERNEL_CONSTANT pw_plan_handle out, const PW_KERNEL_CONSTANT pw_plan_handle in,
                    int leads, uint4* words, unsigned long long count, unsigned long long samples,
                    unsigned long long batch, unsigned long long* took) {
  const bool reports = blockIdx.x == 0 && threadIdx.x == 0;
  const unsigned long long began = peerway::device::detail::clock_ns();
  for (unsigned long long s = 0; s < samples; ++s) {
    const long long start = clock64();
    for (unsigned long long turn = 0; turn < 2 * batch; ++turn) {
      const bool sends = (turn % 2 == 0) == (leads != 0);
      if (!both(sends ? out : in)) return;
      if (!sends) compute(words, count, threadIdx.x, blockDim.x);
    }
    if (reports) took[s] = clock64() - start;
  }
  if (threadIdx.x == 0) atomicMax(took + samples, peerway::device::detail::clock_ns() - began);
}

/// `batch` round trips per sample over the lanes of two plans: `bytes` bytes from `from` to `to`, in the
/// epochs after `epoch`.
extern "C" __global__ void __launch_bounds__(512)
    bench_packets(const PW_KERNEL_CONSTANT pw_lane_handle out, const PW_KERNEL_CONSTANT pw_lane_handle in,
                  int leads, const void* from, void* to, unsigned long long bytes, unsigned long long epoch,
                  unsigned long long samples, unsigned long long batch, unsigned long long* took) {
  using peerway::device::receive;
  using peerway::device::send;
  const unsigned long long began = peerway::device::detail::clock_ns();
  for (unsigned long long s = 0; s < samples; ++s) {
    const long long start = clock64();
    for (unsigned long long turn = 0; turn < batch; ++turn) {
      ++epoch;
      if (leads && send(Block{}, out, epoch, from, bytes) != Result::ok) return;
      if (receive(Block{}, in, epoch, to, bytes) != Result::ok) return;
      if (!leads && send(Block{}, out, epoch, from, bytes) != Result::ok) return;
    }
    if (threadIdx.x == 0) took[s] = clock64() - start;
  }
  if (threadIdx.x == 0) took[samples] = peerway::device::detail::clock_ns() - began;
}
