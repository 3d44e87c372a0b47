// A worker of UCX that polls and finds nothing yields its CPU to a waiting thread. MPICH polls without pause:
// with more ranks than CPUs, the rank that has the answer would wait, at every message, until the time slices
// of polling ranks end.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace pw::uct {

class IdlePolls {
 public:
  /// After each poll, with what it found.
  void polled(unsigned arrived) {
    if (arrived != 0) {
      idle_ = 0;
    } else if (++idle_ >= between_) {
      idle_ = 0;
      if (const uint64_t now = now_ns(); now >= not_before_) offer(now);
    }
  }

  /// Empty polls until the CPU is offered again. An offer that took long was taken; those that nobody takes
  /// become rare.
  static unsigned next(unsigned between, uint64_t took_ns) {
    return took_ns >= kTaken ? kLeast : std::min(2 * between, kMost);
  }

 private:
  static constexpr unsigned kLeast = 32, kMost = 4096;  // about what a change of thread costs, and far more
  static constexpr uint64_t kTaken = 5'000;             // ns
  // Ranks that wait give the CPU back at once. Programs that compute keep it for long, and would leave next
  // to nothing to one that offers it again at once.
  static constexpr uint64_t kShare = 16;

  void offer(uint64_t now) {
    sched_yield();
    const uint64_t back = now_ns();
    between_ = next(between_, back - now);
    not_before_ = back + (back - now) / kShare;
  }

  unsigned idle_ = 0;
  unsigned between_ = kLeast;
  uint64_t not_before_ = 0;
};

}  // namespace pw::uct
