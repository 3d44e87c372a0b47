// What a put with a signal takes between two GPUs of one host, written by hand: no plan, no table, one block.
// One process drives both GPUs; a round is there and back, a line of JSON for each size and way.
//
//     nvcc -arch=native -std=c++17 -O3 -I include apps/limits/put_and_signal.cu -o put_and_signal &&
//     ./put_and_signal
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "peerway/device.cuh"

namespace {

using peerway::device::Word;
namespace gpu = peerway::device::detail;

constexpr int kRounds = 3000, kWarmUp = 100;
constexpr unsigned kMostThreads = 512, kMostBytes = 1 << 20;

#define MUST(call)                                                                        \
  do {                                                                                    \
    const cudaError_t error = (call);                                                     \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "put_and_signal: %s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (false)

struct Side {
  uint4 *from, *to;  ///< in this GPU's memory
  Word* signal;      ///< likewise
  Word* took;        ///< nanoseconds of all rounds after the warm-up
  cudaStream_t stream;
};

/// Copies 16-byte words, `in_flight` loads before the first store, and notifies the signal after them;
/// without words, the signal alone.
template <int in_flight>
__device__ void send(uint4* to, const uint4* from, unsigned words, Word* signal, Word value) {
  for (unsigned n = threadIdx.x; n < words; n += in_flight * blockDim.x) {
    uint4 word[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k)
      if (n + k * blockDim.x < words) word[k] = from[n + k * blockDim.x];
#pragma unroll
    for (int k = 0; k < in_flight; ++k)
      if (n + k * blockDim.x < words) to[n + k * blockDim.x] = word[k];
  }
  __syncthreads();
  if (threadIdx.x == 0) words == 0 ? gpu::store_relaxed(signal, value) : gpu::store_release(signal, value);
}

__device__ void wait(const Word* signal, Word value) {
  if (threadIdx.x == 0)
    while (gpu::load_acquire(signal) < value) continue;
  __syncthreads();
}

__global__ void __launch_bounds__(kMostThreads)
    ping_pong(uint4* to, const uint4* from, unsigned words, Word* signal, const Word* own, bool leads,
              Word* took) {
  Word began = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kWarmUp) began = gpu::clock_ns();
    if (!leads) wait(own, round + 1);
    send<4>(to, from, words, signal, round + 1);
    if (leads) wait(own, round + 1);
  }
  if (threadIdx.x == 0) *took = gpu::clock_ns() - began;
}

void measure(Side (&side)[2], unsigned bytes, const char* device) {
  const unsigned words = bytes / unsigned{sizeof(uint4)};
  const unsigned threads = std::clamp(words, 32u, kMostThreads);
  for (int g = 0; g < 2; ++g) {
    MUST(cudaSetDevice(g));
    MUST(cudaMemset(side[g].signal, 0, sizeof(Word)));
    MUST(cudaDeviceSynchronize());
  }
  for (int g = 0; g < 2; ++g) {
    MUST(cudaSetDevice(g));
    ping_pong<<<1, threads, 0, side[g].stream>>>(side[1 - g].to, side[g].from, words, side[1 - g].signal,
                                                 side[g].signal, g == 0, side[g].took);
    MUST(cudaGetLastError());
  }
  Word took = 0;
  for (int g = 1; g >= 0; --g) {
    MUST(cudaSetDevice(g));
    MUST(cudaStreamSynchronize(side[g].stream));
    MUST(cudaMemcpy(&took, side[g].took, sizeof took, cudaMemcpyDeviceToHost));
  }
  std::printf(
      "{\"test\": \"put_and_signal\", \"via\": \"%s\", \"bytes\": %u, \"mean_us\": %.3f, \"device\": "
      "\"%s\"}\n",
      bytes == 0 ? "flag alone" : "by hand", bytes, static_cast<double>(took) / 2e3 / (kRounds - kWarmUp),
      device);
}

}  // namespace

int main() {
  int count = 0;
  MUST(cudaGetDeviceCount(&count));
  if (count < 2) {
    std::fprintf(stderr, "put_and_signal: found %d GPUs; it needs two of one host\n", count);
    return 1;
  }
  Side side[2]{};
  for (int g = 0; g < 2; ++g) {
    MUST(cudaSetDevice(g));
    MUST(cudaDeviceEnablePeerAccess(1 - g, 0));
    MUST(cudaMalloc(&side[g].from, kMostBytes));
    MUST(cudaMalloc(&side[g].to, kMostBytes));
    MUST(cudaMalloc(&side[g].signal, sizeof(Word)));
    MUST(cudaMalloc(&side[g].took, sizeof(Word)));
    MUST(cudaStreamCreateWithFlags(&side[g].stream, cudaStreamNonBlocking));
  }
  cudaDeviceProp properties{};
  MUST(cudaGetDeviceProperties(&properties, 0));
  for (const unsigned bytes : {0u, 16u, 8192u, 65536u}) measure(side, bytes, properties.name);
  return 0;
}
