// Waits briefly for operations of an object that is being destroyed to complete.
#pragma once

#include <sched.h>

#include "base/clock.h"
#include "peerway/nic.h"

namespace pw::nic {

template <typename Idle>
bool settle(const pw_nic_ops& ops, pw_nic* nic, Idle&& idle) {
  constexpr uint64_t kWhile = 200'000'000;  // ns
  const uint64_t deadline = deadline_after(kWhile);
  while (!idle()) {
    if (now_ns() > deadline) return false;
    if (ops.progress(nic) == 0) sched_yield();
  }
  return true;
}

}  // namespace pw::nic
