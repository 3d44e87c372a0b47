// The times that a traced plan's kernels take: where they are written, and how they are read.
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
  /// Null where nothing is traced. The context must be current. Throws Error.
  static std::unique_ptr<TracedTimes> make(const Gpu& gpu, Pins& pins, const Kernels& kernels,
                                           const Program& program);
  ~TracedTimes();  ///< the context must be current, and nothing under way
  TracedTimes(const TracedTimes&) = delete;

  /// The initial contents of the device memory that the kernels use.
  [[nodiscard]] peerway::device::StepTimes initial() const;

  /// The part as a launch has it, which this thread was called to make: it tells from where.
  unsigned launched(PlanPart part);

  /// Takes what has ended into the trace; may be called by any thread.
  void take();

  /// Reads the GPU's clock; `stream` is idle.
  void read_clock(CUstream stream);

 private:
  TracedTimes(const Gpu& gpu, Pins& pins, const Kernels& kernels, std::unique_ptr<StepTrack> track);

  const Gpu gpu_;
  Pins& pins_;
  const Kernels& kernels_;
  std::unique_ptr<StepTrack> track_;
  std::mutex mutex_;
  void* memory_;  ///< the words by which clocks are read, then the records
  peerway::device::StepRecord* records_;
  uint64_t taken_ = 0;
};

}  // namespace pw::cuda
