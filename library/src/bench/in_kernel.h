// A ping-pong in which a kernel on each side starts and finishes all plans itself, up to the last trip.
#pragma once

#include <cstdint>

#include "bench/gpu.h"
#include "bench/samples.h"
#include "peerway/peerway.h"

namespace pw::bench {

struct KernelPingPong {
  pw_plan* out = nullptr;
  pw_plan* in = nullptr;
  bool leads = false;
  void* words = nullptr;  ///< one block computes on these between messages; not used if compute_bytes is 0
  uint64_t compute_bytes = 0;
  unsigned blocks = 1;  ///< number of blocks that share the pieces of the plans
  unsigned threads = 256;
};

/// The same over the lanes of two plans, on which the kernel sends and receives itself.
struct LanePingPong {
  pw_plan* out = nullptr;
  pw_plan* in = nullptr;
  int partner = 0;
  int tag = 0;
  bool leads = false;
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t bytes = 0;
  uint64_t epoch = 0;  ///< epoch of the trip before the first one
  unsigned threads = 256;
};

/// A sample is the mean of `batch` round trips. Throws Error.
Samples run_packets(const Gpu& gpu, pw_context* context, pw_stream stream, const LanePingPong& work,
                    uint64_t samples, uint64_t batch);

/// A sample is `batch` round trips. Throws Error.
Samples run_in_kernel(const Gpu& gpu, pw_context* context, pw_stream stream, const KernelPingPong& work,
                      uint64_t samples, uint64_t batch);

}  // namespace pw::bench
