// How the tests measure time. A machine that is busy with something else must not make a NIC look broken, or
// look good, so the time of the clock alone does not count. A test that waits for an event also counts the
// CPU time of its polling thread (Deadline). The duration of a call of the plugin is counted in ticks of
// another thread, which a busy machine delays as much (Watchdog).
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

/// The deadline of a thread that polls for an event: it passes when both the clock and the CPU time of the
/// thread have advanced by `ns`. By then every other runnable thread, such as one of the NIC, has had about
/// as much CPU time.
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

/// A thread of each process that watches the calls of the plugin. A call that takes longer than kHung_s ends
/// the process. "Entry" is a function of the plugin, by its name in pw_nic_ops.
class Watchdog {
 public:
  /// Starts the thread. It calls `hung` with the name of an entry that does not return; `hung` must end the
  /// process.
  static void start(void (*hung)(const char* entry));
  /// The calling thread enters a function of the plugin.
  static void enter(const char* entry);
  /// The function has returned. Returns the seconds that it took; time in which the watchdog's thread could
  /// not run does not count.
  static double leave();
  static int thread();  ///< the id of the watchdog's thread

  static constexpr double kTick_s = 0.02, kHung_s = 20;
};

}  // namespace pw::nic::check
