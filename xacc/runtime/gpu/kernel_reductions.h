// The reductions of a kernel's launch: where its blocks join their values, and how the host gets the results.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "peerway/xacc/acc.h"

namespace pwx {

constexpr size_t kMostReductions = 16;

/// The argument of a kernel for one reduction, as kernels/reductions.cuh has it, whatever T is.
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

/// Before the launch, whose kernel gets `arguments`.
KernelReductions prepare_reductions(int count, const pwx_reduction* reductions, long queue);
/// After it. Without a queue the host has the results when this returns, else when it waited for the queue.
void deliver_reductions(const KernelReductions& totals, const pwx_reduction* reductions, int count,
                        long queue);

/// Memory for the reductions of a queue, so that the first of them need not make it.
void reserve_reductions(long queue);
/// Before the context ends.
void free_reductions();

}  // namespace pwx
