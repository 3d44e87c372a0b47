// What the programs written by hand share: errors, the clock, and sums and maxima of a block.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                      \
  if (const cudaError_t status = (call); status != cudaSuccess) {                        \
    std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
    std::exit(1);                                                                        \
  }

inline double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// The time in seconds when the GPU has done all work so far.
inline double seconds_when_done() {
  CHECK(cudaDeviceSynchronize());
  return seconds_now();
}

/// Gives thread 0 the combined value of a block of whole warps; `id` is the thread's number in it. Zero is
/// neutral.
template <class T, class Op>
__device__ T combined(T value, Op op, int id, int threads) {
  __shared__ T of_warps[32];
  for (int distance = 16; distance > 0; distance /= 2)
    value = op(value, __shfl_down_sync(~0u, value, distance));
  if (id % 32 == 0) of_warps[id / 32] = value;
  __syncthreads();
  if (id < 32) {
    value = id < threads / 32 ? of_warps[id] : T{};
    for (int distance = 16; distance > 0; distance /= 2)
      value = op(value, __shfl_down_sync(~0u, value, distance));
  }
  return value;
}
