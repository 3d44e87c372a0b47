// Sequences: kernels and plans that directives with nothing between them launch. They are recorded, and what
// comes again with the same arguments is one launch of a CUDA graph.
#pragma once

#include <cstddef>

#include "peerway/peerway.hpp"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/grid.h"

namespace pwx {

/// A kernel to launch. `in_order`: it waits itself for the work before it, so it is made ready meanwhile.
struct KernelLaunch {
  pw::cuda::CUfunction function;
  bool in_order;
  Grid grid;

  bool operator==(const KernelLaunch&) const = default;
};

/// Launches a kernel in the order of the program's work without a queue, or records it. `sizes`: of the
/// arguments; null where they are not known, which is not recorded.
void launch_in_order(const KernelLaunch& launch, void** arguments, const unsigned* sizes, size_t count);
/// The same of a plan, its start and its finish.
void run_in_order(peerway::Plan& plan);
/// At once, on any stream.
void launch_on(pw::cuda::CUstream stream, const KernelLaunch& launch, void** arguments);

/// Before anything else uses the GPU: launches what is recorded.
void launch_recorded();

/// A plan ends: so do the graphs that have it.
void forget_graphs();

}  // namespace pwx
