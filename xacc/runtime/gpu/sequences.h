// Sequences: kernels and plans launched by directives with nothing between them. They are recorded; a
// sequence that comes again with the same arguments is one launch of a CUDA graph.
#pragma once

#include <cstddef>

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

  bool operator==(const KernelLaunch&) const = default;
};

/// Launches a kernel in the order of the program's work without a queue, or records it. `sizes` are those of
/// the arguments; if null, they are unknown, and the launch is not recorded.
void launch_in_order(const KernelLaunch& launch, void** arguments, const unsigned* sizes, size_t count);
/// The same for the start and the finish of a plan.
void run_in_order(peerway::Plan& plan);
/// Launches a kernel at once, on any stream.
void launch_on(pw::cuda::CUstream stream, const KernelLaunch& launch, void** arguments);

/// Launches what is recorded. Call it before anything else uses the GPU.
void launch_recorded();

/// Destroys all graphs. Call it when a plan ends, since graphs may contain it.
void forget_graphs();

}  // namespace pwx
