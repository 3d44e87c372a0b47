// Puts that a kernel posts into a ring buffer in host memory; the context's proxy carries them out over any
// path.
#ifndef PEERWAY_DEVICE_FIFO_CUH
#define PEERWAY_DEVICE_FIFO_CUH

#include "peerway/device/guard.cuh"
#include "peerway/device/scope.cuh"

namespace peerway::device {
namespace detail {

/// Waits until the ring buffer has room for entry `number`. `fifo.room` caches the proxy's progress in device
/// memory, so that a poll rarely crosses the link. A stale value only makes a thread poll again.
PW_ON_DEVICE bool wait_for_room(const pw_fifo_handle& fifo, Word number) {
  if (number <= load_relaxed(fifo.room) + fifo.count) return true;
  Deadline deadline(fifo.guard, -1, number);
  for (;;) {
    const Word taken = load_acquire(fifo.taken);
    if (number <= taken + fifo.count) {
      store_relaxed(fifo.room, taken);
      return true;
    }
    if (!deadline.keep_waiting()) return false;
  }
}

PW_ON_DEVICE void write_entry(const pw_fifo_handle& fifo, Word number, const pw_fifo_put& put) {
  pw_fifo_entry* entry = fifo.entries + ((number - 1) & (fifo.count - 1));
  store_relaxed(&entry->to_offset, put.to_offset);
  store_relaxed(&entry->from_offset, put.from_offset);
  store_relaxed(&entry->bytes, put.bytes);
  store_relaxed(&entry->by, put.by);
  store_relaxed(&entry->to_from, put.to | static_cast<Word>(put.from) << 32);
  store_relaxed(&entry->signal, put.signal);
  store_release(&entry->number, number);
}

}  // namespace detail

/// Posts a put, ordered after everything that the scope's threads stored before. All threads pass the same
/// arguments. The source must not change until wait() for this put's number returns. Any number of scopes may
/// post at the same time; the proxy begins entries in the order of their numbers. `*number` is set only for
/// the first thread of the scope, whose number is the one that wait() uses. Returns ok, cancelled (with the
/// FIFO), timeout (no room came in time) or other_version.
template <class Scope>
PW_ON_DEVICE Result post(const Scope& scope, const pw_fifo_handle& fifo, const pw_fifo_put& put,
                         Word* number) {
  if (!detail::is_of_this_version(fifo)) return Result::other_version;
  scope.sync();
  bool posted = true;
  if (scope.index() == 0) {
    *number = detail::fetch_add(fifo.posted, 1) + 1;
    posted = detail::wait_for_room(fifo, *number);
    if (posted) detail::write_entry(fifo, *number, put);
  }
  return detail::result_of(scope, posted, fifo.guard);
}

/// Returns ok once the put with this number and all earlier ones are complete at both ends; else cancelled,
/// timeout or other_version.
template <class Scope>
PW_ON_DEVICE Result wait(const Scope& scope, const pw_fifo_handle& fifo, Word number) {
  if (!detail::is_of_this_version(fifo)) return Result::other_version;
  bool done = true;
  if (scope.index() == 0) {
    detail::Deadline deadline(fifo.guard, -1, number);
    done = detail::wait_at_least(fifo.done, number, deadline);
  }
  return detail::result_of(scope, done, fifo.guard);
}

}  // namespace peerway::device

#endif
