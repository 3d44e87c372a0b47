#include "device/host/runner.h"

#include <sched.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/relax.h"
#include "base/status.h"
#include "device/device.h"
#include "device/host/copy.h"
#include "device/host/reduction.h"
#include "device/host/stream.h"
#include "device/step_trace.h"
#include "trace/call.h"

namespace pw {
namespace {

constexpr uint64_t kPollsBetweenTimes = 1024;

std::atomic_ref<uint64_t> word_of(const GrowingWords& words, uint32_t index) {
  return std::atomic_ref(words.word[index]);
}

bool reached(const GrowingWords& words, uint64_t epoch) {
  for (uint32_t w = 0; w < words.count; ++w)
    if (word_of(words, w).load(std::memory_order_acquire) < words.in(epoch)) return false;
  return true;
}

// The steps of a plan's start or of its finish, and which of them are still to be done in the current epoch.
class Steps {
 public:
  explicit Steps(std::vector<ProgramStep> steps) : steps_(std::move(steps)), open_(steps_.size()) {}

  void begin() {
    ++epoch_;
    began_ = trace::recording() ? trace::now() : 0;
    for (size_t i = 0; i < open_.size(); ++i) open_[i] = i;
    remaining_ = open_.size();
  }
  [[nodiscard]] bool done() const { return remaining_ == 0; }
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  void cancel() { remaining_ = 0; }

  /// Does what can be done now; returns true when all steps are done.
  bool progress() {
    size_t kept = 0;
    for (size_t i = 0; i < remaining_; ++i)
      if (!step(steps_[open_[i]])) open_[kept++] = open_[i];
    remaining_ = kept;
    return remaining_ == 0;
  }

  /// Returns the rank that the first open step waits for.
  [[nodiscard]] int rank() const { return remaining_ == 0 ? -1 : steps_[open_[0]].rank; }

 private:
  bool step(const ProgramStep& step) const {
    if (step.wait.word != nullptr && !reached(step.wait, epoch_)) return false;
    if (trace::recording() && (step.trace_kind != 0 || step.notified >= 0 || step.awaited >= 0)) [[unlikely]]
      act_traced(step);
    else
      act(step);
    return true;
  }

  void act_traced(const ProgramStep& step) const {
    bool done = false;
    for (const StepEvent& event : events_of(step, epoch_)) {
      trace::Operation operation(static_cast<pw_trace_kind>(event.kind), event.peer, event.bytes, event.tag);
      if (event.kind == PW_TRACE_SIGNAL) operation.since(began_);
      if (!std::exchange(done, true)) act(step);
      operation.end();
      if (step.trace_kind != 0) operation.by(step.method);
    }
  }

  void act(const ProgramStep& step) const {
    if (step.kind == StepKind::copy) {
      const bool odd = (epoch_ & 1) != 0;
      host_copy({step.to + (odd ? step.to_odd_offset : 0), step.from + (odd ? step.from_odd_offset : 0),
                 step.layout});
    }
    if (step.stored_words.word != nullptr)
      for (uint32_t w = 0; w < step.stored_words.count; ++w)
        word_of(step.stored_words, w).store(step.stored_words.in(epoch_), std::memory_order_release);
    if (step.sleepers_to_wake != nullptr) wake(*step.sleepers_to_wake);
  }

  std::vector<ProgramStep> steps_;
  std::vector<size_t> open_;  ///< indices of steps; the first `remaining_` are still to be done in this epoch
  size_t remaining_ = 0;
  uint64_t epoch_ = 0;
  uint64_t began_ = 0;  ///< when the epoch began, for a trace
};

// The rounds of a plan's finish. Each begins when everything before it is done.
class Rounds {
 public:
  explicit Rounds(const std::vector<ProgramRound>& rounds) {
    for (const ProgramRound& round : rounds) rounds_.push_back({round.reduction, Steps(round.steps)});
    next_ = rounds_.size();
  }

  void begin() { next_ = 0; }
  void cancel() {
    for (Round& round : rounds_) round.steps.cancel();
    next_ = rounds_.size();
  }
  [[nodiscard]] bool done() const { return next_ == rounds_.size() && (next_ == 0 || last().done()); }
  /// The steps that are under way or were last.
  [[nodiscard]] const Steps& last() const { return rounds_[next_ - 1].steps; }

  /// Does what can be done now; returns true when all rounds are done. Call it when the steps before the
  /// rounds are done.
  bool progress() {
    for (;;) {
      if (next_ > 0 && !rounds_[next_ - 1].steps.progress()) return false;
      if (next_ == rounds_.size()) return true;
      Round& round = rounds_[next_++];
      if (round.reduction) host_reduce(*round.reduction);
      round.steps.begin();
    }
  }

 private:
  struct Round {
    std::optional<peerway::device::Reduction> reduction;
    Steps steps;
  };
  std::vector<Round> rounds_;
  size_t next_ = 0;  ///< index of the round that begins next
};

// The state that the runner and its enqueued calls share.
class SharedState {
 public:
  explicit SharedState(const Program& program)
      : start_(program.start),
        finish_(program.finish),
        rounds_(program.rounds),
        guard_(program.guard),
        waiting_(program.waiting),
        sent_(sent_bytes(program)) {}

  void begin(PlanPart part) {
    std::lock_guard lock(mutex_);
    if (part != PlanPart::finish) start_.begin();
    if (part != PlanPart::start) {
      finish_.begin();
      rounds_.begin();
    }
    if (guard_->report.load(std::memory_order_relaxed) != 0) return cancel();
    progress();
  }

  // Returns true once everything begun is done or cancelled.
  bool poll() {
    std::lock_guard lock(mutex_);
    return progress() || give_up();
  }

  // After this nothing accesses the plan's memory, even if calls are still in streams.
  void end() {
    std::lock_guard lock(mutex_);
    if (guard_->report.load(std::memory_order_relaxed) == 0)
      report(1);
    else
      cancel();
  }

  uint64_t epochs(PlanPart part) {
    std::lock_guard lock(mutex_);
    return part == PlanPart::finish ? finish_.epoch() : start_.epoch();
  }

  // Runs the part in a stream: its steps, and for a finish also the remaining steps of the start.
  void run(PlanPart part) {
    std::optional<trace::Operation> operation;
    if (trace::recording()) {
      operation.emplace(name_of(part), kind_of(part));
      operation->of(part == PlanPart::finish ? 0 : sent_, -1);
      operation->by("host stream");
    }
    begin(part);
    if (waiting_->blocking()) return sleep_until_done();
    constexpr int kPolls = 64;
    for (int polls = 0; !poll(); polls = (polls + 1) % kPolls)
      polls == 0 ? static_cast<void>(sched_yield()) : relax();
  }

 private:
  void sleep_until_done() {
    const uint64_t began = now_ns();
    if (waiting_->poll_before_sleep(poll_time_, [this] { return poll(); })) return;
    const uint64_t since = now_ns();
    const Sleeper sleeper(waiting_->sleepers());
    for (;;) {
      const uint32_t seen = sleeper.seen();
      if (poll()) return poll_time_.slept(now_ns() - began);
      sleeper.sleep(seen, waiting_->nap_ns(Wakes::always, now_ns() - since));
    }
  }

  bool progress() {
    const bool started = start_.progress();
    const bool all = finish_.progress() && started && rounds_.progress();
    if (all) waiting_->wake();  // another thread may wait for the same
    return all;
  }

  // A blocking wait polls rarely, so it reads the time at each poll, from a clock that is fast and coarse.
  bool give_up() {
    const bool blocking = waiting_->blocking();
    const bool stopped = guard_->stop.load(std::memory_order_acquire) != 0;
    if (stopped) return report(1);
    if (!blocking && ++polls_ % kPollsBetweenTimes != 0) return false;
    const uint64_t now = blocking ? coarse_now_ns() : now_ns();
    const uint64_t epoch = start_.epoch() + finish_.epoch();
    if (epoch != waiting_epoch_) {
      waiting_epoch_ = epoch;
      waiting_since_ = now;
    }
    return now - waiting_since_ > guard_->timeout_ns && report(2);
  }

  bool report(unsigned why) {
    const Steps& waiting = !finish_.done()                    ? finish_
                           : !start_.done() || rounds_.done() ? start_
                                                              : rounds_.last();
    guard_->report.store(peerway::device::detail::report_of(why, waiting.rank(), waiting.epoch()),
                         std::memory_order_release);
    cancel();
    waiting_->wake();
    return true;
  }

  void cancel() {
    start_.cancel();
    finish_.cancel();
    rounds_.cancel();
  }

  std::mutex mutex_;  // the host may check a plan while a stream runs it
  Steps start_, finish_;
  Rounds rounds_;
  std::shared_ptr<Guard> guard_;
  std::shared_ptr<const Waiting> waiting_;
  const uint64_t sent_;  ///< bytes that a start sends
  PollTime poll_time_;
  uint64_t polls_ = 0, waiting_epoch_ = 0, waiting_since_ = 0;
};

class HostRunner final : public Runner {
 public:
  explicit HostRunner(const Program& program) : state_(std::make_shared<SharedState>(program)) {}
  ~HostRunner() override { state_->end(); }

  pw_status enqueue(void* stream, PlanPart part, const Condition& condition) override {
    static_cast<HostStream*>(stream)->enqueue([=, state = state_, place = std::string(trace::place())] {
      if (!condition.is_met()) return;
      const trace::NamedCall call(place);
      state->run(part);
    });
    return PW_OK;
  }
  pw_status begin(PlanPart part, const std::optional<void*>&) override {
    state_->begin(part);
    return PW_OK;
  }
  bool done(pw_status& status) override {
    status = PW_OK;
    return state_->poll();
  }
  bool notify(void (*)(void*), void*) override { return false; }
  uint64_t epochs(PlanPart part) override { return state_->epochs(part); }
  pw_status handle(pw_plan_handle&) override {
    return fail(PW_UNSUPPORTED,
                "a plan of the host has no kernels to start it from; start it from the host or on a "
                "stream");
  }

 private:
  std::shared_ptr<SharedState> state_;
};

}  // namespace

std::unique_ptr<Runner> make_host_runner(const Program& program) {
  return std::make_unique<HostRunner>(program);
}

}  // namespace pw
