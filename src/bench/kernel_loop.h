// The timed loop of plans that kernels start and finish.
#pragma once

#include "bench/in_kernel.h"
#include "bench/plans.h"

namespace pw::bench {

class KernelLoop {
 public:
  /// `trip` is of latency_trip() or message_trip(), on a GPU, and `bytes` contiguous bytes move. With
  /// `packets` the kernel sends and receives over the lanes of a message_trip() itself. Throws Error.
  KernelLoop(const Ends& ends, Trip trip, uint64_t bytes, bool packets, uint64_t timeout_ns);

  /// A sample is one trip there and back; of packets the mean of some.
  Samples run(uint64_t samples);

 private:
  Ends ends_;
  Trip trip_;
  uint64_t bytes_;
  bool packets_;
  uint64_t trips_ = 0;  ///< made so far
  Gpu gpu_;
  Stream stream_;
};

}  // namespace pw::bench
