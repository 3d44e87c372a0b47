// Monotonic time in nanoseconds, and deadlines made of it.
#pragma once

#include <cstdint>
#include <ctime>

namespace pw {

inline uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

inline constexpr uint64_t kNever = UINT64_MAX;

/// The moment `timeout_ns` from now; PW_FOREVER is never.
inline uint64_t deadline_after(uint64_t timeout_ns) {
  const uint64_t now = now_ns();
  return timeout_ns > kNever - now ? kNever : now + timeout_ns;
}

}  // namespace pw
