// What a worker of UCX does when it polls and finds nothing: it gives its CPU to a thread that waits for it.
// MPICH polls without a pause. With more ranks than CPUs, the rank that has the answer would wait for others
// that poll until their share of time ends, at every message.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace pw::uct {

class IdlePolls {
 public:
  /// After each poll, with what it found.
  void polled(unsigned found) {
    if (found != 0) {
      idle_ = 0;
    } else if (++idle_ >= between_) {
      idle_ = 0;
      const uint64_t before = now_ns();
      sched_yield();
      between_ = next(between_, now_ns() - before);
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

  unsigned idle_ = 0;
  unsigned between_ = kLeast;
};

}  // namespace pw::uct
