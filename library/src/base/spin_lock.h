// A lock for a few instructions on the hot path, where a mutex would cost as much as the work itself. A
// waiting thread yields the CPU after a few polls.
#pragma once

#include <sched.h>

#include <atomic>

namespace pw {

class SpinLock {
 public:
  void lock() noexcept {
    for (int turn = 0; flag_.exchange(true, std::memory_order_acquire); ++turn)
      if (turn > 64) sched_yield();
  }
  bool try_lock() noexcept { return !flag_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> flag_{false};
};

}  // namespace pw
