// Waits for something that another rank will do, by the context's policy: spin first, then yield the CPU
// between polls (busy-poll) or sleep until woken (blocking). Every wait ends: when it has happened, at the
// deadline, when the rank is lost, or when the program interrupts it.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/relax.h"
#include "base/status.h"
#include "base/waiting.h"
#include "team/team.h"

namespace pw {

/// Returns the rank if it is lost; for PW_ANY_RANK any lost rank; else -1.
int lost_of(const Team& team, int rank);

/// Throws Error(PW_PEER_LOST) if the rank is lost.
void refuse_lost(const Team& team, int rank);

/// The conditions that end a wait besides its event.
struct WaitFor {
  const Team& team;
  int rank;  ///< the rank that the wait depends on; PW_ANY_RANK: all ranks
  uint64_t deadline_ns;
  const char* event;  ///< for the message

  /// Returns the status that ends the wait, with its message; PW_OK: continue.
  [[nodiscard]] pw_status ended() const;
};

/// Waits until `done()` returns true. `before_sleep` is called once, before the first sleep if there is one,
/// and returns whether wake() will be called when it is time to poll again.
template <typename Done, typename BeforeSleep>
pw_status wait_until(const Waiting& waiting, const WaitFor& wait, Done&& done, BeforeSleep&& before_sleep) {
  const bool blocking = waiting.blocking();
  // One for each kind of wait, because each has its own instance of this function.
  thread_local PollTime poll_time;
  const uint64_t began = blocking ? now_ns() : 0;
  if (blocking ? waiting.poll_before_sleep(poll_time, done) : waiting.poll_first(done)) return PW_OK;
  Interrupt interrupt;
  if (!blocking) {
    for (const int polls = waiting.polls_between();;) {
      if (wait.ended() != PW_OK) return done() ? PW_OK : wait.ended();  // the event may have come just before
      if (interrupt.wanted()) return fail_interrupted(wait.event);
      sched_yield();
      for (int i = polls; i > 0; --i) {
        if (done()) return PW_OK;
        if (i > 1) relax();
      }
    }
  }
  const uint64_t since = now_ns();
  const Wakes wakes = before_sleep();
  const Sleeper sleeper(waiting.sleepers());
  for (;;) {
    const uint32_t seen = sleeper.seen();
    if (done()) {
      poll_time.slept(now_ns() - began);
      return PW_OK;
    }
    if (wait.ended() != PW_OK) return done() ? PW_OK : wait.ended();
    if (interrupt.wanted()) return fail_interrupted(wait.event);
    const uint64_t now = now_ns();
    const uint64_t remaining = wait.deadline_ns > now ? wait.deadline_ns - now : 0;
    sleeper.sleep(seen, std::min(remaining, waiting.nap_ns(wakes, now - since)));
  }
}

template <typename Done>
pw_status wait_until(const Waiting& waiting, const WaitFor& wait, Done&& done,
                     Wakes wakes = Wakes::unless_unseen) {
  return wait_until(waiting, wait, done, [wakes] { return wakes; });
}

}  // namespace pw
