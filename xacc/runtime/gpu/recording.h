// Recordings: launches of kernels and plans, kept to be issued later or captured into a CUDA graph.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peerway/peerway.hpp"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/grid.h"

namespace pwx {

constexpr size_t kMostArguments = 256;  ///< of a kernel, besides those that launch_on adds

/// A kernel to launch.
struct KernelLaunch {
  pw::cuda::CUfunction function;
  bool in_order;     ///< it waits for the work before it itself, so that its launch can overlap that work
  bool conditional;  ///< its last parameter is the state of a loop, without whose PWX_LOOP_AGAIN it does
                     ///< nothing
  Grid grid;
  peerway::Plan* plan = nullptr;  ///< by whose lanes it exchanges values
  /// If only its iterations that may read halos wait for the reflect before it: a word on the GPU that is 0.
  pw::cuda::CUdeviceptr overlaps = 0;

  bool operator==(const KernelLaunch&) const = default;
};

/// A recorded kernel launch with its arguments or, without a function, a plan to run.
struct Recorded {
  KernelLaunch kernel{};
  std::vector<unsigned> sizes{};
  std::vector<std::byte> arguments{};  ///< each padded to a multiple of 16 bytes
  bool leaves_room = false;            ///< a plan that the kernel behind it overlaps

  bool operator==(const Recorded&) const = default;
};
using Recording = std::vector<Recorded>;

bool is_plan(const Recorded& launch);

/// Adds a kernel launch; `sizes` are those of the `count` arguments.
void record(Recording& recording, const KernelLaunch& launch, void** arguments, const unsigned* sizes,
            size_t count);
void record(Recording& recording, peerway::Plan& plan);

/// Launches a kernel at once, on any stream. With a `state` it does nothing unless that is PWX_LOOP_AGAIN;
/// the kernel must be conditional.
void launch_on(pw::cuda::CUstream stream, const KernelLaunch& launch, std::span<void* const> arguments,
               pw::cuda::CUdeviceptr state = 0);

/// Issues everything in order; on a stream that is captured, into its graph. With a `state` nothing is done
/// unless that is PWX_LOOP_AGAIN.
void issue_all(Recording& recording, pw::cuda::CUstream stream, pw::cuda::CUdeviceptr state = 0);

/// A graph of so many times everything in order, captured on the stream. Throws Failure.
pw::cuda::CUgraphExec captured(Recording& recording, pw::cuda::CUstream stream, long times);

/// Whether it can be issued with a state, because all its kernels are conditional.
bool is_conditional(const Recording& recording);

/// Throws Error if a plan in the recording has failed.
void check_plans(const Recording& recording);

}  // namespace pwx
