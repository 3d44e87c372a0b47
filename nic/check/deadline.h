// Time as the tests count it. A NIC is never found broken, nor good, because the machine is busy with
// something else: what does not come is waited for in CPU time of the thread that polls, and how long a call
// takes is counted in ticks of a thread that sleeps and wakes beside it.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace pw::nic::check {

/// CPU time of a polling thread after which something will not come any more. Set once, before the tests.
extern uint64_t longest_wait_ns;

inline uint64_t thread_time_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// The deadline of a thread that polls until something has come: other threads that could run have had about
/// as much of the CPU.
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

/// Calls of the plugin are watched by a thread of each process: one that never returns ends the process.
class Watchdog {
 public:
  /// `hung` is called with the name of the entry that does not return; it must not return either.
  static void start(void (*hung)(const char* entry));
  static void enter(const char* entry);
  /// Seconds that the call took, as far as other threads could run meanwhile.
  static double leave();
  static int thread();  ///< its id

  static constexpr double kTick_s = 0.02, kHung_s = 20;
};

}  // namespace pw::nic::check
