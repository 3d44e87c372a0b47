// Waits in a kernel. A wait ends when its value has come, when the host cancels it, or when its timeout
// passes.
#ifndef PEERWAY_DEVICE_GUARD_CUH
#define PEERWAY_DEVICE_GUARD_CUH

#include "peerway/device/memory.cuh"
#include "peerway/device/result.cuh"
#include "peerway/handles.h"

namespace peerway::device {
namespace detail {

/// The flag usually arrives before the first check, so checks can be rare.
constexpr unsigned kPollsBetweenChecks = 512;

/// Nanoseconds between two polls of host memory by all waits under one guard. A GPU's reads of one word of
/// host memory are served one after another, about 1 us each. If every warp polled it, a plan of 64 blocks
/// would stall for half a millisecond; its peer would therefore wait as long and stall in turn, and both
/// would stay that slow.
constexpr long long kBetweenHostPolls = 1000000;

/// This bit of pw_guard::polled: the host has cancelled the waits.
constexpr Word kStopped = Word{1} << 63;

/// Returns whether the host has cancelled the waits, as of the last poll of host memory. The first thread
/// that finds the next poll due polls for all.
PW_ON_DEVICE bool stopped(const pw_guard& guard, Word now) {
  const Word polled = load_relaxed(guard.polled);
  if ((polled & kStopped) != 0) return true;
  if (static_cast<long long>(now - polled) < kBetweenHostPolls) return false;
  if (!replace(guard.polled, polled, now) || load_relaxed(guard.stop) == 0) return false;
  set_bits(guard.polled, kStopped);
  return true;
}

/// Packs a value for pw_guard::report: the reason (1: cancelled, 2: timeout), the rank waited for plus 1, and
/// the epoch.
PW_ON_DEVICE Word report_of(unsigned why, int rank, Word epoch) {
  return why | static_cast<Word>(rank + 1) << 8 | epoch << 32;
}

/// The limits of one wait: it ends when its timeout has passed or the host cancels it.
class Deadline {
 public:
  PW_ON_DEVICE Deadline(const pw_guard& guard, int rank, Word epoch)
      : guard_(guard), rank_(rank), epoch_(epoch) {}

  /// Returns false once the wait must end. Call it after each poll that found nothing.
  PW_ON_DEVICE bool keep_waiting() {
    if (++polls_ % kPollsBetweenChecks != 0) return true;
    const Word now = clock_ns();
    if (stopped(guard_, now)) return give_up(kCancelledByHost);
    if (started_ == 0) started_ = now;
    return now - started_ <= guard_.timeout_ns || give_up(kTimedOut);
  }

  /// For a wait for several ranks: `late` is a rank whose value has not come yet.
  PW_ON_DEVICE bool keep_waiting(int late) {
    rank_ = late;
    return keep_waiting();
  }

 private:
  PW_ON_DEVICE bool give_up(unsigned why) {
    store_release(guard_.report, report_of(why, rank_, epoch_));
    return false;
  }

  const pw_guard& guard_;
  int rank_;
  Word epoch_;
  unsigned polls_ = 0;
  Word started_ = 0;
};

/// Returns true once *word is at least `value`; everything stored before that value is then visible to this
/// thread. Returns false if the wait must end.
PW_ON_DEVICE bool wait_at_least(const Word* word, Word value, Deadline& deadline) {
  while (load_acquire(word) < value)
    if (!deadline.keep_waiting()) return false;
  return true;
}

}  // namespace detail
}  // namespace peerway::device

#endif
