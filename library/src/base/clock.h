// Deadlines: times on the monotonic clock in nanoseconds, so that one timeout can limit several steps.
#pragma once

#include <cstdint>
#include <ctime>

#include "peerway/peerway.h"

namespace pw {

inline uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// The same clock, some milliseconds behind; for places where reading the time must cost almost nothing.
inline uint64_t coarse_now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// A deadline that never passes.
inline constexpr uint64_t kNever = PW_FOREVER;

/// PW_FOREVER and timeouts too large for the clock never pass.
inline uint64_t deadline_after(uint64_t timeout_ns) noexcept {
  if (timeout_ns == PW_FOREVER)
    return PW_FOREVER;  // avoids reading the clock, which takes as long as a
                        // small put
  const uint64_t now = now_ns();
  return timeout_ns > PW_FOREVER - now ? PW_FOREVER : now + timeout_ns;
}

/// Returns the time until `deadline`, for poll(): rounded up, at most a minute (callers loop), 0 once it has
/// passed.
inline int poll_milliseconds(uint64_t deadline) noexcept {
  const uint64_t now = now_ns();
  if (deadline <= now) return 0;
  const uint64_t milliseconds = (deadline - now + 999'999) / 1'000'000;
  return milliseconds > 60'000 ? 60'000 : static_cast<int>(milliseconds);
}

}  // namespace pw
