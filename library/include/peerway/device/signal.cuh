// One-sided operations from inside a kernel: put, notify, wait; and packets over a lane of a plan. All
// threads of the scope call with the same arguments.
#ifndef PEERWAY_DEVICE_SIGNAL_CUH
#define PEERWAY_DEVICE_SIGNAL_CUH

#include "peerway/device/packet.cuh"

namespace peerway::device {

/// Stores `bytes` bytes at `offset` of a peer's region. They are visible there once a later notify() has
/// arrived. out_of_range: they do not fit the region, and nothing is stored.
template <class Scope>
PW_ON_DEVICE Result put(const Scope& scope, const pw_remote_handle& to, unsigned long long offset,
                        const void* from, unsigned long long bytes) {
  if (!detail::is_of_this_version(to)) return Result::other_version;
  if (offset > to.bytes || bytes > to.bytes - offset) return Result::out_of_range;
  copy(scope, to.address + offset, from, bytes);
  return Result::ok;
}

/// Adds `by` to a peer's signal, ordered after everything that the scope's threads stored before.
template <class Scope>
PW_ON_DEVICE Result notify(const Scope& scope, const pw_notify_handle& signal, unsigned long long by = 1) {
  if (!detail::is_of_this_version(signal)) return Result::other_version;
  scope.sync();
  if (scope.index() != 0) return Result::ok;
  const Word total = *signal.total + by;
  *signal.total = total;
  detail::store_release(signal.word, total);
  return Result::ok;
}

/// put() and then notify().
template <class Scope>
PW_ON_DEVICE Result put(const Scope& scope, const pw_remote_handle& to, unsigned long long offset,
                        const void* from, unsigned long long bytes, const pw_notify_handle& signal,
                        unsigned long long by = 1) {
  const Result done = put(scope, to, offset, from, bytes);
  return done == Result::ok ? notify(scope, signal, by) : done;
}

/// Returns ok once the signal is at least `value`; what was put before that notification is then visible to
/// the scope. Returns cancelled when the signal's sender is lost or the context is closed, timeout after the
/// handle's timeout.
template <class Scope>
PW_ON_DEVICE Result wait(const Scope& scope, const pw_signal_handle& signal, unsigned long long value) {
  if (!detail::is_of_this_version(signal)) return Result::other_version;
  bool there = true;
  if (scope.index() == 0) {
    detail::Deadline deadline(signal.guard, signal.sender, value);
    for (;;) {
      Word sum = 0;
      for (unsigned w = 0; w < signal.words; ++w) sum += detail::load_acquire(signal.word + w);
      if (sum >= value || !(there = deadline.keep_waiting())) break;
    }
  }
  return detail::result_of(scope, there, signal.guard);
}

namespace detail {

PW_ON_DEVICE unsigned char* slot_of(const pw_lane_handle& lane, unsigned long long epoch,
                                    unsigned long long offset) {
  return lane.slots + (epoch & 1) * lane.slot_bytes + 2 * offset;
}

/// Whether that part fits the lane and consists of whole units.
PW_ON_DEVICE Result check(const pw_lane_handle& lane, const void* address, unsigned long long bytes,
                          unsigned long long offset) {
  if (!is_of_this_version(lane)) return Result::other_version;
  const auto bits = reinterpret_cast<unsigned long long>(address) | bytes | offset;
  if ((bits & (lane.unit - 1)) != 0) return Result::misaligned;
  const unsigned long long room = lane.slot_bytes / 2;
  return bytes <= room && offset <= room - bytes ? Result::ok : Result::out_of_range;
}

}  // namespace detail

/// Sends `bytes` bytes to the other end of the lane, as the part of epoch `epoch`'s data that begins at
/// `offset`. Epochs count from 1. Several blocks may each send and receive a part. A part of epoch n + 2 may
/// be sent only once the part of epoch n is known to be received: in an exchange, once the part of epoch n +
/// 1 has come from the other end. Returns out_of_range if the part does not fit the lane, misaligned if
/// address, length or offset is not a multiple of the lane's unit (8 or 4 bytes).
template <class Scope>
PW_ON_DEVICE Result send(const Scope& scope, const pw_lane_handle& lane, unsigned long long epoch,
                         const void* from, unsigned long long bytes, unsigned long long offset = 0) {
  if (const Result fits = detail::check(lane, from, bytes, offset); fits != Result::ok) return fits;
  StridedCopy words{};
  words.from = static_cast<const unsigned char*>(from);
  words.outer_from = lane.unit;
  const auto count = static_cast<unsigned>(lane.unit == 8 ? bytes >> 3 : bytes >> 2);
  detail::Slots to{detail::slot_of(lane, epoch, offset), static_cast<unsigned>(epoch)};
  lane.unit == 8 ? detail::send_words<Word>(scope, words, 0, count, to)
                 : detail::send_words<unsigned>(scope, words, 0, count, to);
  return Result::ok;  // these slots are always open
}

/// Receives that part: returns ok once all of it has come and is stored at `to`; else what send() returns,
/// cancelled or timeout.
template <class Scope>
PW_ON_DEVICE Result receive(const Scope& scope, const pw_lane_handle& lane, unsigned long long epoch,
                            void* to, unsigned long long bytes, unsigned long long offset = 0) {
  if (const Result fits = detail::check(lane, to, bytes, offset); fits != Result::ok) return fits;
  StridedCopy words{};
  words.to = static_cast<unsigned char*>(to);
  words.outer_to = lane.unit;
  const auto count = static_cast<unsigned>(lane.unit == 8 ? bytes >> 3 : bytes >> 2);
  const auto flag = static_cast<unsigned>(epoch);
  detail::Deadline deadline(lane.guard, lane.rank, epoch);
  const unsigned char* slots = detail::slot_of(lane, epoch, offset);
  const bool there = lane.unit == 8
                         ? detail::receive_words<Word>(scope, words, slots, 0, count, flag, deadline)
                         : detail::receive_words<unsigned>(scope, words, slots, 0, count, flag, deadline);
  return detail::result_of(scope, there, lane.guard);
}

}  // namespace peerway::device

#endif
