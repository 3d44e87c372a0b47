// Reductions in kernels: the GPU memory in which the blocks of a launch combine their values, and the
// delivery of the result to the host.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "peerway/xacc/acc.h"

namespace pwx {

constexpr size_t kMostReductions = 16;

/// A kernel's argument for one reduction. Its layout is that of pwx_total<T> in kernels/reductions.cuh, which
/// is the same for every T.
struct Total {
  void* of_blocks;
  unsigned* done;
  void* on_device;
  void* host_slot;
  uint32_t number;
};

/// The reductions of one launch.
struct KernelReductions {
  std::array<Total, kMostReductions> arguments;
  std::vector<size_t> slots;  ///< where the host finds the results that do not stay on the GPU
};

/// Call it before the launch, and pass `arguments` to the kernel.
KernelReductions prepare_reductions(int count, const pwx_reduction* reductions, long queue);
/// Call it after the launch. A synchronous launch has its results on the host when this returns; with a queue
/// they are there once the host has waited for the queue.
void deliver_reductions(const KernelReductions& totals, const pwx_reduction* reductions, int count,
                        long queue);

/// Allocates the memory of a queue's reductions now, so that the first reduction does not have to.
void reserve_reductions(long queue);
/// Call it before the CUDA context ends.
void free_reductions();

}  // namespace pwx
