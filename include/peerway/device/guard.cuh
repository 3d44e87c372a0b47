// Waiting in a kernel, with an end: when the word is there, when the host has cancelled, when time is up.
#ifndef PEERWAY_DEVICE_GUARD_CUH
#define PEERWAY_DEVICE_GUARD_CUH

#include "peerway/device/memory.cuh"
#include "peerway/handles.h"

namespace peerway::device {
namespace detail {

/// Looks past the link are rare: the words that are waited for come mostly long before the first.
constexpr unsigned kPollsBetweenLooks = 512;

/// What pw_guard::report holds: why (1: cancelled, 2: timeout), the rank waited for plus 1, and the epoch.
PW_ON_DEVICE Word report_of(unsigned why, int rank, Word epoch) {
  return why | static_cast<Word>(rank + 1) << 8 | epoch << 32;
}

/// How long a wait has lasted, and whether to go on with it.
class Patience {
 public:
  PW_ON_DEVICE Patience(const pw_guard& guard, int rank, Word epoch)
      : guard_(guard), rank_(rank), epoch_(epoch) {}

  /// False once the wait must end; called after each look in vain.
  PW_ON_DEVICE bool left() {
    if (++polls_ % kPollsBetweenLooks != 0) return true;
    if (load_relaxed(guard_.stop) != 0) return give_up(1);
    const Word now = clock_ns();
    if (started_ == 0) started_ = now;
    return now - started_ <= guard_.timeout_ns || give_up(2);
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

/// Returns true once *word is at least `value`; what was stored before it is then visible to this thread.
PW_ON_DEVICE bool wait_at_least(const Word* word, Word value, Patience& patience) {
  while (load_acquire(word) < value)
    if (!patience.left()) return false;
  return true;
}

}  // namespace detail
}  // namespace peerway::device

#endif
