// Waiting for something that another rank will do: spin first, then give the processor away between looks,
// and always end: when it happened, when the deadline passed, when the rank is lost.
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "team/team.h"

namespace pw {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

/// Waits until `done()` holds. `rank` is whom it depends on; PW_ANY_RANK: on anybody. `what` is for the
/// message.
template <typename Done>
pw_status wait_until(const Team& team, int rank, uint64_t deadline_ns, const char* what, Done&& done) {
  constexpr int kSpins =
      4096;  // some tens of microseconds: longer than any wait between processes that both run
  for (uint64_t turn = 0;; ++turn) {
    for (int i = 0; i < (turn == 0 ? kSpins : 16); ++i) {
      if (done()) return PW_OK;
      relax();
    }
    const int lost = rank == PW_ANY_RANK ? team.any_lost() : (team.lost(rank) ? rank : -1);
    if (lost >= 0) {
      if (done()) return PW_OK;  // it may have come just before
      return fail(PW_PEER_LOST, format("peerway: waiting for {}: {}", what, team.describe_loss(lost)));
    }
    if (deadline_ns != PW_FOREVER && now_ns() >= deadline_ns)
      return fail(PW_TIMEOUT, format("peerway: waiting for {}: the time given has passed", what));
    sched_yield();
  }
}

}  // namespace pw
