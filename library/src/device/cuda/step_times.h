// Collects the times that a traced plan's kernels record: where kernels write them, and who reads them.
#pragma once

#include <memory>
#include <vector>

#include "device/cuda/kernels.h"
#include "device/cuda/pins.h"
#include "device/cuda/queue.h"
#include "device/step_trace.h"
#include "peerway/device/times.cuh"

namespace pw::cuda {

class TracedTimes {
 public:
  /// Returns null if nothing is traced. The context must be current. Throws Error.
  static std::unique_ptr<TracedTimes> make(const Gpu& gpu, Pins& pins, const Kernels& kernels,
                                           const Program& program);
  ~TracedTimes();  ///< the context must be current, and no kernel under way
  TracedTimes(const TracedTimes&) = delete;

  /// Returns the initial value of the kernels' data, to be written to device memory.
  [[nodiscard]] peerway::device::StepTimes initial() const;

  /// Returns the number of the part for a launch that this thread makes; the number includes the place of the
  /// call.
  unsigned launched(PlanPart part);

  /// Moves the runs that have ended into the trace; any thread may call it.
  void take();

  /// Reads the GPU's clock; `stream` must be idle.
  void read_clock(CUstream stream);

 private:
  TracedTimes(const Gpu& gpu, Pins& pins, const Kernels& kernels, std::unique_ptr<StepTrack> track);

  const Gpu gpu_;
  Pins& pins_;
  const Kernels& kernels_;
  std::unique_ptr<StepTrack> track_;
  std::mutex mutex_;
  void* memory_;  ///< the words for reading clocks, then the records
  peerway::device::StepRecord* records_;
  uint64_t taken_ = 0;
};

}  // namespace pw::cuda
