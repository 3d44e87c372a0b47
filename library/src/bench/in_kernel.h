// A ping-pong in which a kernel on each side starts and finishes all plans itself, to the last trip.
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
  void* words = nullptr;  ///< computed on between messages, by one block; none with 0 bytes
  uint64_t compute_bytes = 0;
  unsigned blocks = 1;  ///< that share the pieces of the plans
  unsigned threads = 256;
};

/// The same over the lanes of two plans, which the kernel sends and receives by itself.
struct LanePingPong {
  pw_plan* out = nullptr;
  pw_plan* in = nullptr;
  int partner = 0;
  int tag = 0;
  bool leads = false;
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t bytes = 0;
  uint64_t epoch = 0;  ///< of the last trip before
  unsigned threads = 256;
};

/// A sample is the mean of `batch` trips there and back. Throws Error.
Samples run_packets(const Gpu& gpu, pw_context* context, pw_stream stream, const LanePingPong& work,
                    uint64_t samples, uint64_t batch);

/// A sample is `batch` trips there and back. Throws Error.
Samples run_in_kernel(const Gpu& gpu, pw_context* context, pw_stream stream, const KernelPingPong& work,
                      uint64_t samples, uint64_t batch);

}  // namespace pw::bench
