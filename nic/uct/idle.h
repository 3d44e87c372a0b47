// When a worker of UCX polls and finds nothing, this yields its CPU to a waiting thread. MPICH polls without
// pause: with more ranks than CPUs, a rank that has the answer would have to wait, for every message, until
// the time slices of polling ranks end.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace pw::uct {

class IdlePolls {
 public:
  /// Call it after each poll, with the number of events found.
  void polled(unsigned arrived) {
    if (arrived != 0) {
      idle_ = 0;
    } else if (++idle_ >= between_) {
      idle_ = 0;
      if (const uint64_t now = now_ns(); now >= not_before_) offer(now);
    }
  }

  /// Returns the number of empty polls until the CPU is offered again. If an offer took long, another thread
  /// used it; offers that nobody uses become rare.
  static unsigned next(unsigned between, uint64_t took_ns) {
    return took_ns >= kTakenNs ? kFewestPolls : std::min(2 * between, kMostPolls);
  }

 private:
  static constexpr unsigned kFewestPolls = 32,
                            kMostPolls = 4096;  // from about the cost of a thread switch to far more
  static constexpr uint64_t kTakenNs = 5'000;   // ns
  // Ranks that wait return the CPU at once. Programs that compute keep it for long, and would leave almost
  // nothing to a thread that offers it again at once.
  static constexpr uint64_t kShare = 16;

  void offer(uint64_t now) {
    sched_yield();
    const uint64_t back = now_ns();
    between_ = next(between_, back - now);
    not_before_ = back + (back - now) / kShare;
  }

  unsigned idle_ = 0;
  unsigned between_ = kFewestPolls;
  uint64_t not_before_ = 0;
};

}  // namespace pw::uct
