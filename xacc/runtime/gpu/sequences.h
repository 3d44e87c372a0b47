// Sequences: kernels and plans launched by directives with nothing between them. They are recorded; a
// sequence that comes again with the same arguments is one launch of a CUDA graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "peerway/peerway.hpp"
#include "xacc/runtime/gpu/recording.h"

namespace pwx {

/// Memory of the GPU.
struct MemoryOnGpu {
  std::byte* first;
  uint64_t bytes;
};

/// Launches a kernel in the order of the program's work without a queue, or records it. `sizes` are those of
/// the arguments; if null, they are unknown, and the launch is not recorded.
void launch_in_order(const KernelLaunch& launch, void** arguments, const unsigned* sizes, size_t count);
/// Counts a kernel without iterations as a part of its sequence: so all ranks record the same plans, and none
/// starts one at once that another one will launch only behind something collective.
void skip_in_order();
/// Launches or records the start and the finish of a plan.
void run_in_order(peerway::Plan& plan);
/// The same for a reflect's plan. `refreshed` is the memory of the arrays whose halos it refreshes, valid as
/// long as the plan. `overlapped` says until the next reflect of the directive whether a kernel overlaps this
/// one. A reflect that is launched before its kernel is known leaves room if a kernel overlapped the one
/// before.
void reflect_in_order(peerway::Plan& plan, std::span<const MemoryOnGpu> refreshed, bool& overlapped);

/// If the last use of the GPU was to refresh halos: the memory of the arrays.
std::span<const MemoryOnGpu> refreshed_last();
/// Says that a kernel overlaps that reflect.
void overlap_last_reflect();

/// Launches what is recorded. Call it before anything else uses the GPU. Throws Failure while launches are
/// diverted, unless the loop that they are of can be executed without a graph.
void launch_recorded();

/// Until the next call, launches are recorded here instead; null ends that.
void divert_launches(Recording* recording);
/// Counts uses of the GPU that are no launches in order, so that a loop knows whether launches are all.
uint64_t other_uses();

/// Destroys all graphs. Call it when a plan ends, since graphs may contain it.
void forget_graphs();

}  // namespace pwx
