// The timed loop of plans that kernels start and finish.
#pragma once

#include <cstdint>

#include "bench/in_kernel.h"
#include "bench/plans.h"

namespace pw::bench {

/// The work of the kernel.
enum class InKernel : uint8_t {
  one_sided,  ///< starts and finishes the plans of a latency_trip()
  messages,   ///< starts and finishes those of a message_trip(), with as many blocks as they have pieces
  packets,    ///< sends and receives over the lanes of a message_trip() itself, with one block
};

class KernelLoop {
 public:
  /// Runs on a GPU; each message has `bytes` contiguous bytes. Throws Error.
  KernelLoop(const Ends& ends, Trip trip, uint64_t bytes, InKernel kind, uint64_t timeout_ns);

  /// A sample is one round trip; with packets it is the mean of several.
  Samples run(uint64_t samples);

 private:
  Ends ends_;
  Trip trip_;
  uint64_t bytes_;
  InKernel kind_;
  unsigned blocks_;
  uint64_t trips_ = 0;  ///< number of trips made so far
  Gpu gpu_;
  Stream stream_;
};

}  // namespace pw::bench
