// Lets a program end its own waits (Ctrl-C): waits of a thread call that thread's check at intervals.
#pragma once

#include "base/clock.h"
#include "peerway/peerway.h"

namespace pw {

/// The check that pw_set_interrupt_check set for this thread.
struct InterruptCheck {
  int (*check)(void* user) = nullptr;
  void* user = nullptr;
};
extern constinit thread_local InterruptCheck interrupt_check;

/// Returns PW_INTERRUPTED, with the message for pw_error_message().
pw_status fail_interrupted(const char* awaited) noexcept;

/// Calls this thread's check during one wait: not in a short wait, then once in each slice of time.
class Interrupt {
 public:
  static constexpr uint64_t kSlice = 20'000'000;  ///< ns; people do not notice twice this time

  Interrupt() : next_(interrupt_check.check == nullptr ? PW_FOREVER : coarse_now_ns() + kSlice) {}

  /// Whether a check is set. Without one, waits need no slices.
  [[nodiscard]] bool possible() const { return next_ != PW_FOREVER; }
  /// Call it at least once in each slice.
  [[nodiscard]] bool wanted() {
    if (!possible()) return false;
    const uint64_t now = coarse_now_ns();
    if (now < next_) return false;
    next_ = now + kSlice;
    return ask();
  }
  /// Calls the check now, because a signal may have ended a system call.
  [[nodiscard]] static bool ask() {
    return interrupt_check.check != nullptr && interrupt_check.check(interrupt_check.user) != 0;
  }

 private:
  uint64_t next_;
};

/// For poll(): like poll_milliseconds, but at most a slice if a check is set.
inline int sliced_milliseconds(uint64_t deadline) {
  const int milliseconds = poll_milliseconds(deadline);
  constexpr int kSliceMilliseconds = Interrupt::kSlice / 1'000'000;
  return interrupt_check.check != nullptr && milliseconds > kSliceMilliseconds ? kSliceMilliseconds
                                                                               : milliseconds;
}

}  // namespace pw
