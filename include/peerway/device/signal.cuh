// One-sided operations from inside a kernel: put, raise, wait; and packets over a lane of a plan. All threads
// of the scope call with the same arguments.
#ifndef PEERWAY_DEVICE_SIGNAL_CUH
#define PEERWAY_DEVICE_SIGNAL_CUH

#include "peerway/device/packet.cuh"

namespace peerway::device {

/// Starts to store `bytes` bytes at `offset` of a peer's region. They are visible there once a raise() that
/// comes after has arrived. False, and nothing is stored, past the end of the region.
template <class Scope>
PW_ON_DEVICE bool put(const Scope& scope, const pw_remote_handle& to, unsigned long long offset,
                      const void* from, unsigned long long bytes) {
  if (offset > to.bytes || bytes > to.bytes - offset) return false;
  copy(scope, to.address + offset, from, bytes);
  return true;
}

/// Raises a peer's signal, after all that the threads of the scope stored before.
template <class Scope>
PW_ON_DEVICE void raise(const Scope& scope, const pw_raise_handle& signal, unsigned long long by = 1) {
  scope.sync();
  if (scope.index() != 0) return;
  const Word total = *signal.total + by;
  *signal.total = total;
  detail::store_release(signal.word, total);
}

/// put() and then raise().
template <class Scope>
PW_ON_DEVICE bool put(const Scope& scope, const pw_remote_handle& to, unsigned long long offset,
                      const void* from, unsigned long long bytes, const pw_raise_handle& signal,
                      unsigned long long by = 1) {
  if (!put(scope, to, offset, from, bytes)) return false;
  raise(scope, signal, by);
  return true;
}

/// Returns true once the signal is at least `value`: what was put before it was raised is then visible to the
/// scope. False when its sender is lost, the time is up, or the host has cancelled.
template <class Scope>
PW_ON_DEVICE bool wait(const Scope& scope, const pw_signal_handle& signal, unsigned long long value) {
  bool there = true;
  if (scope.index() == 0) {
    detail::Patience patience(signal.guard, signal.sender, value);
    for (;;) {
      Word sum = 0;
      for (unsigned w = 0; w < signal.words; ++w) sum += detail::load_acquire(signal.word + w);
      if (sum >= value || !(there = patience.left())) break;
    }
  }
  return scope.all(there);
}

namespace detail {

PW_ON_DEVICE unsigned char* slot_of(const pw_lane_handle& lane, unsigned long long epoch,
                                    unsigned long long offset) {
  return lane.slots + (epoch & 1) * lane.slot_bytes + 2 * offset;
}

/// Whether that part fits the lane, in whole words of it.
PW_ON_DEVICE bool fits(const pw_lane_handle& lane, const void* address, unsigned long long bytes,
                       unsigned long long offset) {
  const auto bits = reinterpret_cast<unsigned long long>(address) | bytes | offset;
  return (bits & (lane.unit - 1)) == 0 && 2 * bytes <= lane.slot_bytes &&
         2 * offset <= lane.slot_bytes - 2 * bytes;
}

}  // namespace detail

/// Sends `bytes` bytes to the other end of the lane, as the part of its data that begins at `offset`, in the
/// lane's epoch number `epoch`, which counts from 1. Several blocks may send and receive a part each. A part
/// of epoch n + 2 may be sent only once it is known that the part of epoch n was received: in an exchange,
/// once the part of epoch n + 1 has come from the other end. False when it does not fit the lane, or address,
/// length and offset are no multiples of its unit (8 or 4 bytes).
template <class Scope>
PW_ON_DEVICE bool send(const Scope& scope, const pw_lane_handle& lane, unsigned long long epoch,
                       const void* from, unsigned long long bytes, unsigned long long offset = 0) {
  if (!detail::fits(lane, from, bytes, offset)) return false;
  StridedCopy words{};
  words.from = static_cast<const unsigned char*>(from);
  words.outer_from = lane.unit;
  const auto count = static_cast<unsigned>(lane.unit == 8 ? bytes >> 3 : bytes >> 2);
  detail::Slots to{detail::slot_of(lane, epoch, offset), static_cast<unsigned>(epoch)};
  return lane.unit == 8 ? detail::send_words<Word>(scope, words, 0, count, to)
                        : detail::send_words<unsigned>(scope, words, 0, count, to);
}

/// Receives that part: returns true once all of it has come and is stored at `to`. False as for send() and
/// wait().
template <class Scope>
PW_ON_DEVICE bool receive(const Scope& scope, const pw_lane_handle& lane, unsigned long long epoch, void* to,
                          unsigned long long bytes, unsigned long long offset = 0) {
  if (!detail::fits(lane, to, bytes, offset)) return false;
  StridedCopy words{};
  words.to = static_cast<unsigned char*>(to);
  words.outer_to = lane.unit;
  const auto count = static_cast<unsigned>(lane.unit == 8 ? bytes >> 3 : bytes >> 2);
  const auto flag = static_cast<unsigned>(epoch);
  detail::Patience patience(lane.guard, lane.rank, epoch);
  const unsigned char* slots = detail::slot_of(lane, epoch, offset);
  const bool there = lane.unit == 8
                         ? detail::receive_words<Word>(scope, words, slots, 0, count, flag, patience)
                         : detail::receive_words<unsigned>(scope, words, slots, 0, count, flag, patience);
  return scope.all(there);
}

}  // namespace peerway::device

#endif
