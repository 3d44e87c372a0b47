// A program is what a plan does on one device: an immutable list of steps with addresses of the program's
// process. A runner is a program prepared on its device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/waiting.h"
#include "device/shape.h"
#include "peerway/device/element.cuh"
#include "peerway/device/plan.cuh"
#include "peerway/handles.h"
#include "peerway/peerway.h"

namespace pw {

struct Copy;

using peerway::device::Condition;
using peerway::device::StepKind;

/// `count` consecutive words whose value in epoch e is base + (e - lag) * by; there are none if `word` is
/// null.
struct GrowingWords {
  uint64_t* word = nullptr;
  uint64_t base = 0;
  uint64_t by = 1;
  uint64_t lag = 0;
  uint32_t count = 1;

  [[nodiscard]] uint64_t in(uint64_t epoch) const { return epoch <= lag ? base : base + (epoch - lag) * by; }
};

struct ProgramStep {
  StepKind kind = StepKind::copy;
  int rank = -1;  ///< the rank that the step depends on
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Layout layout;
  uint32_t pieces = 1;  ///< workers that share it; waits and stores of more than one word have one for each
                        ///< worker
  uint32_t unit = 0;    ///< packets: bytes per word
  int64_t to_odd_offset = 0;    ///< distance of the target in odd epochs
  int64_t from_odd_offset = 0;  ///< distance of the source in odd epochs
  bool reads_source_early =
      false;  ///< copy: the wait concerns only the target, so the source may be read before it ends
  GrowingWords wait;
  GrowingWords stored_words;
  // For a trace:
  uint8_t trace_kind = 0;  ///< PW_TRACE_PUT or PW_TRACE_GET if it moves bytes to or from another rank
  int32_t notified = -1;   ///< tag of the signal whose words are stored
  int32_t awaited = -1;    ///< tag of the signal whose words the wait reads, if the wait is a step of its own
  std::string_view method = "";  ///< method of the transfer; the text must outlive the runner
  Sleepers* sleepers_to_wake =
      nullptr;  ///< threads that may sleep until the words are stored; the CPU wakes them
};

/// Host memory with which the host ends a program's waits, and learns of waits that ended early: one page,
/// pinned for the device.
struct Guard {
  std::atomic<uint64_t> stop;
  alignas(64) std::atomic<uint64_t> report;  ///< a value of peerway::device::detail::report_of
  uint64_t timeout_ns;                       ///< limit of each wait
  uint64_t* polled;                          ///< pw_guard::polled, in the device's memory
  // Used by programs with operations that the proxy performs:
  alignas(64) std::atomic<uint64_t> trigger;  ///< the turn that was begun (PostedPlan); stored by the device
  alignas(64) std::atomic<uint64_t> done;     ///< the turn whose operations are complete
  std::atomic<int32_t> awaited;               ///< the rank that the proxy waits for, plus 1; 0: none
  char why[1024];                             ///< the message for `stop`, if there is one
};

/// What a finish does once everything before it is done in the same epoch: first the reduction, if there is
/// one, then the steps.
struct ProgramRound {
  std::optional<peerway::device::Reduction> reduction;
  std::vector<ProgramStep> steps;
};

struct Program {
  std::vector<ProgramStep> start;
  std::vector<ProgramStep> finish;
  std::vector<ProgramRound> rounds;  ///< after the steps of `start` and `finish`
  std::shared_ptr<Guard> guard;
  std::shared_ptr<const Waiting> waiting;  ///< of the threads that wait for the program
};

enum class PlanPart : uint8_t { start, finish, both };

class Runner {
 public:
  virtual ~Runner() = default;

  /// Runs the part in the order of a stream of the device, if the condition is met when the stream comes to
  /// it.
  virtual pw_status enqueue(void* stream, PlanPart part, const Condition& condition) = 0;

  /// Begins the part for the host, which then calls done() until it returns true. If `after` has a stream,
  /// the part runs after the work in that stream.
  virtual pw_status begin(PlanPart part, const std::optional<void*>& after) = 0;

  /// Returns true once what begin() began is done. Returns false with a status if the device failed.
  virtual bool done(pw_status& status) = 0;

  /// Calls `call(user)` on some thread once what begin() began is done. Returns false if only done() can
  /// tell.
  virtual bool notify(void (*call)(void*), void* user) = 0;

  /// Tells it whether other work of the device runs beside the program.
  virtual void leave_room(bool) {}

  /// Returns how often the part was run, whoever started it. Call it only while nothing is under way.
  virtual uint64_t epochs(PlanPart part) = 0;

  /// Returns PW_UNSUPPORTED if there are no kernels.
  virtual pw_status handle(pw_plan_handle& handle) = 0;
};

}  // namespace pw
