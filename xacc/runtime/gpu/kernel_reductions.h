// The reductions of a kernel launch: where blocks combine their values, and how the host gets the results.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "peerway/xacc/acc.h"

namespace pwx {

constexpr size_t kMostReductions = 16;

/// The argument of a kernel for one reduction: the layout of pwx_total (kernels/reductions.cuh) for any T.
struct Total {
  void* of_blocks;
  unsigned* last_number;
  void* on_device;
  void* host_slot;
  uint32_t number;
};

/// The reductions of one launch.
struct KernelReductions {
  std::array<Total, kMostReductions> arguments;
  std::vector<size_t> slots;  ///< where the host finds the results that do not stay on the GPU
};

/// Prepares the reductions before the launch; the kernel gets `arguments`.
KernelReductions prepare_reductions(int count, const pwx_reduction* reductions, long queue);
/// Takes the results after the launch. Without a queue the host has them on return, else after waiting for
/// the queue.
void deliver_reductions(const KernelReductions& totals, const pwx_reduction* reductions, int count,
                        long queue);

/// Allocates the memory for a queue's reductions, so that the first reduction need not do so.
void reserve_reductions(long queue);
/// Call it before the context ends.
void free_reductions();

}  // namespace pwx
