// Time for the tests. A NIC must never be judged broken, or good, because the machine is busy with something
// else. So missing events are waited for in CPU time of the polling thread, and the duration of a call is
// counted in ticks of a thread that sleeps and wakes beside it.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace pw::nic::check {

/// CPU time of a polling thread after which an event counts as missing. Set once, before the tests.
extern uint64_t longest_wait_ns;

inline uint64_t thread_time_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// The deadline of a thread that polls for an event. When it passes, other runnable threads have had about as
/// much of the CPU.
class Deadline {
 public:
  explicit Deadline(uint64_t ns = longest_wait_ns) : ns_(ns) {}
  [[nodiscard]] bool passed() const {
    return coarse_now_ns() - begun_ > ns_ && thread_time_ns() - cpu_begun_ > ns_;
  }

 private:
  uint64_t ns_;
  uint64_t begun_ = coarse_now_ns();
  uint64_t cpu_begun_ = thread_time_ns();
};

/// A thread of each process that watches the calls of the plugin: a call that never returns ends the process.
class Watchdog {
 public:
  /// `hung` is called with the name of the entry that does not return. It must not return either.
  static void start(void (*hung)(const char* entry));
  static void enter(const char* entry);
  /// Returns the seconds that the call took, counting only time in which other threads could run.
  static double leave();
  static int thread();  ///< its thread id

  static constexpr double kTick_s = 0.02, kHung_s = 20;
};

}  // namespace pw::nic::check
