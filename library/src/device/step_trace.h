// Records plans that a stream or kernels ran: each start and finish, and what it did for other ranks, on a
// track of the plan's own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/program.h"
#include "trace/operation.h"

namespace pw {

/// The kind and the name of an event for a part of a plan.
pw_trace_kind kind_of(PlanPart part);
std::string_view name_of(PlanPart part);

/// The action of a step for another rank: a put, a get, a notification or a wait. `kind` is 0 if it does
/// nothing.
struct StepEvent {
  int kind = 0;
  int peer = -1;
  uint64_t bytes = 0;
  int32_t tag = -1;
};
/// Returns the events of one step in an epoch; a put that notifies by more than one has a second event.
std::vector<StepEvent> events_of(const ProgramStep& step, uint64_t epoch);

/// Returns the number of bytes that a start sends.
uint64_t sent_bytes(const Program& program);

/// A run of a part of a plan, in ns of the GPU's clock.
struct StepRun {
  PlanPart part;
  bool in_kernel;
  unsigned site;  ///< a number from StepTrack::site()
  uint64_t begin, end;
};

/// The track of one plan on a GPU.
class StepTrack {
 public:
  /// Returns null if nothing is traced. `clock` is a number of the GPU that is the same in all processes.
  static std::unique_ptr<StepTrack> make(const Program& program, DeviceId device, uint32_t clock);
  ~StepTrack();
  StepTrack(const StepTrack&) = delete;

  /// Returns the number of the place that called this thread's current operation; 0 if it is unknown.
  unsigned site();
  /// Records a run, unless recording is stopped. A run in a kernel gets the place at which the plan was made.
  void record_run(const StepRun& run);
  /// Counts parts that ran but whose records were lost.
  void count_lost(uint64_t parts);
  /// Records the times of the GPU and of the host at one moment.
  void record_clock_pair(uint64_t gpu_ns, uint64_t host_ns);

 private:
  StepTrack(const Program& program, pw_trace_writer* writer, int32_t number);
  void add(const StepRun& run, std::string_view name, const StepEvent& step_event,
           std::string_view method_or_runner);
  void add_steps(const StepRun& run, const std::vector<ProgramStep>& steps, uint64_t epoch);

  std::vector<ProgramStep> start_, finish_;
  uint64_t sent_;
  pw_trace_writer* writer_;
  int32_t number_;    ///< of the plan
  unsigned made_at_;  ///< the place at which the plan was made
  uint64_t starts_ = 0, finishes_ = 0;
  bool whole_ = true;  ///< no epoch was lost
};

}  // namespace pw
