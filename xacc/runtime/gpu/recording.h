// Recordings: launches of kernels and plans, kept to be issued later or captured into a CUDA graph.
#pragma once

#include <cstddef>
#include <vector>

#include "peerway/peerway.hpp"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/grid.h"

namespace pwx {

/// A kernel to launch. With `in_order` the kernel itself waits for the work before it, so its launch can
/// overlap that work.
struct KernelLaunch {
  pw::cuda::CUfunction function;
  bool in_order;
  Grid grid;
  peerway::Plan* plan = nullptr;  ///< by whose lanes it exchanges values

  bool operator==(const KernelLaunch&) const = default;
};

/// A recorded kernel launch with its arguments or, without a function, a plan to run.
struct Recorded {
  KernelLaunch kernel{};
  std::vector<unsigned> sizes{};
  std::vector<std::byte> arguments{};  ///< each padded to a multiple of 16 bytes

  bool operator==(const Recorded&) const = default;
};
using Recording = std::vector<Recorded>;

/// Adds a kernel launch; `sizes` are those of the `count` arguments.
void record(Recording& recording, const KernelLaunch& launch, void** arguments, const unsigned* sizes,
            size_t count);
void record(Recording& recording, peerway::Plan& plan);

/// Launches a kernel at once, on any stream.
void launch_on(pw::cuda::CUstream stream, const KernelLaunch& launch, void** arguments);

/// Issues everything in order; on a stream that is captured, into its graph.
void issue_all(Recording& recording, pw::cuda::CUstream stream);

/// Throws Error if a plan in the recording has failed.
void check_plans(const Recording& recording);

}  // namespace pwx
