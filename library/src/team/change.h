// Waits for a change that the team's own thread will make.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/interrupt.h"

namespace pw {

/// Waits until `done()` returns true: PW_OK. Else PW_TIMEOUT or PW_INTERRUPTED. The interrupt check runs
/// without the lock.
pw_status wait_for_change(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                          uint64_t deadline, auto&& done) {
  const uint64_t slice = interrupt_check.check != nullptr ? Interrupt::kSlice : uint64_t{60'000'000'000};
  while (!done()) {
    const uint64_t now = now_ns();
    if (now >= deadline) return PW_TIMEOUT;
    const std::chrono::nanoseconds part(std::min(deadline - now, slice));
    if (changed.wait_for(lock, part, done)) break;
    lock.unlock();
    const bool interrupted = Interrupt::ask();
    lock.lock();
    if (interrupted && !done()) return PW_INTERRUPTED;
  }
  return PW_OK;
}

}  // namespace pw
