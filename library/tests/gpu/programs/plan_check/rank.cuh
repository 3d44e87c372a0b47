// What all checks of plans share: a rank with its GPU, results as JSON lines, and messages whose bytes follow
// from the rank, the epoch and the place.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <peerway/device.cuh>
#include <peerway/peerway.hpp>
#include <stdexcept>
#include <string>

namespace check {

using namespace std::chrono_literals;
using peerway::Status;
using peerway::device::Result;
using peerway::device::Word;

inline std::atomic<int> failures{0};

/// Prints one line; counts it when it failed.
inline void report(int rank, const std::string& name, bool ok, const std::string& detail = "") {
  if (!ok) ++failures;
  std::string text;
  for (const char c : detail) text += c == '"' || c == '\\' ? '\'' : c == '\n' ? ' ' : c;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::printf("{\"check\": \"%s\", \"rank\": %d, \"ok\": %s, \"detail\": \"%s\"}\n", name.c_str(), rank,
              ok ? "true" : "false", text.c_str());
  std::fflush(stdout);
}

inline void cuda(cudaError_t result, const char* action) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(action) + ": " + cudaGetErrorString(result));
}
#define CUDA(call) ::check::cuda((call), #call)

/// One of two ranks, and the GPU that it uses.
struct Rank {
  Rank(peerway::Team& its_team, int device_index, bool only_small)
      : team(its_team), ctx(its_team), rank(its_team.rank()), partner(1 - rank), small(only_small) {
    device = peerway::cuda(device_index);
    CUDA(cudaSetDevice(device_index));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Rank() { cudaStreamDestroy(stream); }
  Rank(const Rank&) = delete;

  void meet() { team.barrier(60s); }
  [[nodiscard]] pw_stream queue() const { return peerway::cuda_stream(stream, device.index); }
  void drain() const { CUDA(cudaStreamSynchronize(stream)); }
  void say(const std::string& name, bool ok, const std::string& detail = "") const {
    report(rank, name, ok, detail);
  }
  /// The other rank's region or signal of the same call.
  template <typename Thing>
  peerway::Remote theirs(const Thing& mine) {
    const auto keys = team.all_gather(mine.key(), 60s);
    return ctx.import(keys[static_cast<size_t>(partner)]);
  }

  peerway::Team& team;
  peerway::Context ctx;
  int rank;
  int partner;
  bool small;  ///< few bytes and epochs
  pw_device device{};
  cudaStream_t stream = nullptr;
};

/// Words of device memory, zero at first.
class Words {
 public:
  explicit Words(size_t count) {
    CUDA(cudaMalloc(&at_, count * sizeof(Word)));
    CUDA(cudaMemset(at_, 0, count * sizeof(Word)));
    CUDA(cudaDeviceSynchronize());
  }
  ~Words() { cudaFree(at_); }
  Words(const Words&) = delete;
  [[nodiscard]] Word* get() const { return at_; }
  [[nodiscard]] Word operator[](size_t n) const {
    Word value = 0;
    CUDA(cudaMemcpy(&value, at_ + n, sizeof value, cudaMemcpyDefault));
    return value;
  }

 private:
  Word* at_ = nullptr;
};

/// Blocks of bytes at a regular stride, in device memory.
struct Message {
  unsigned char* at;
  Word bytes, block, stride;

  __device__ unsigned char& operator[](Word n) const { return at[n / block * stride + n % block]; }
};

/// The layout of a message: `count` blocks.
struct Layout {
  uint64_t block, count, stride;

  [[nodiscard]] uint64_t bytes() const { return block * count; }
  [[nodiscard]] uint64_t span() const { return stride * (count - 1) + block; }
  [[nodiscard]] std::string text() const {
    return count == 1
               ? std::to_string(block) + " B"
               : std::to_string(count) + " x " + std::to_string(block) + " B every " + std::to_string(stride);
  }
  [[nodiscard]] Message in(const peerway::Region& region) const {
    return {static_cast<unsigned char*>(region.address()), bytes(), block, stride};
  }
  [[nodiscard]] auto of(const peerway::Region& region) const {
    return region.block({count}, {static_cast<int64_t>(stride)}, block);
  }
  [[nodiscard]] auto of(const peerway::Remote& remote) const {
    return remote.block({count}, {static_cast<int64_t>(stride)}, block);
  }
};

__device__ inline unsigned char expected(int rank, Word epoch, Word n) {
  Word mixed =
      (n + 1) * 0x9e3779b97f4a7c15ull ^ (epoch * 2 + static_cast<Word>(rank)) * 0xc2b2ae3d27d4eb4full;
  mixed ^= mixed >> 29;
  return static_cast<unsigned char>(mixed * 0xbf58476d1ce4e5b9ull >> 40);
}

// By `workers` workers together, each with its own number.
__device__ inline void fill(const Message& m, int rank, Word epoch, Word worker, Word workers) {
  for (Word n = worker; n < m.bytes; n += workers) m[n] = expected(rank, epoch, n);
}
__device__ inline void poison(const Message& m, Word worker, Word workers) {
  for (Word n = worker; n < m.bytes; n += workers) m[n] = 0xa5;
}
__device__ inline void compare(const Message& m, int rank, Word epoch, Word* wrong, Word worker,
                               Word workers) {
  Word bad = 0;
  for (Word n = worker; n < m.bytes; n += workers) bad += m[n] != expected(rank, epoch, n) ? 1 : 0;
  if (bad != 0) atomicAdd(wrong, bad);
}

__device__ inline Word thread_of_grid() { return blockIdx.x * Word{blockDim.x} + threadIdx.x; }
__device__ inline Word threads_of_grid() { return gridDim.x * Word{blockDim.x}; }

/// Before a start, in the order of a stream: the epoch is in device memory, so that every replay of a graph
/// has its own.
static __global__ void make_ready(Message out, Message in, int rank, const Word* epoch) {
  fill(out, rank, *epoch + 1, thread_of_grid(), threads_of_grid());
  poison(in, thread_of_grid(), threads_of_grid());
}
static __global__ void look_at(Message in, int partner, const Word* epoch, Word* wrong) {
  compare(in, partner, *epoch + 1, wrong, thread_of_grid(), threads_of_grid());
}
static __global__ void poison_all(Message in) { poison(in, thread_of_grid(), threads_of_grid()); }
static __global__ void count_up(Word* epoch) { ++*epoch; }

/// Keeps a stream busy.
static __global__ void dawdle(unsigned microseconds) {
  for (unsigned n = 0; n < microseconds; ++n) __nanosleep(1000);
}

}  // namespace check
