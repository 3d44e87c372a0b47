// Packets: data that carries a flag in the same store, so that no fence and no signal has to follow it. The
// receiver polls each packet until its flag is that of the epoch. Twice the bytes travel, but below about 10
// KiB that is still faster than a signal, which must wait for the data to arrive.
#ifndef PEERWAY_DEVICE_PACKET_CUH
#define PEERWAY_DEVICE_PACKET_CUH

#include "peerway/device/copy.cuh"
#include "peerway/device/guard.cuh"

namespace peerway::device {
namespace detail {

PW_ON_DEVICE Packet make_packet(Word data, unsigned flag) {
  return {static_cast<unsigned>(data), flag, static_cast<unsigned>(data >> 32), flag};
}
PW_ON_DEVICE SmallPacket make_packet(unsigned data, unsigned flag) { return {data, flag}; }

PW_ON_DEVICE bool arrived(const Packet& packet, unsigned flag) {
  return packet.low_flag == flag && packet.high_flag == flag;
}
PW_ON_DEVICE bool arrived(const SmallPacket& packet, unsigned flag) { return packet.flag == flag; }

PW_ON_DEVICE Word data_of(const Packet& packet) { return packet.low | static_cast<Word>(packet.high) << 32; }
PW_ON_DEVICE unsigned data_of(const SmallPacket& packet) { return packet.data; }

/// The packet type that carries a unit of a copy, and the integer type of its data.
template <typename Unit>
struct PacketOf {
  using Type = SmallPacket;
  using Data = unsigned;
};
template <>
struct PacketOf<Word> {
  using Type = Packet;
  using Data = Word;
};

/// The address and the flag of packets. open() is called once the data has been loaded.
struct Slots {
  unsigned char* address;
  unsigned flag;
  PW_ON_DEVICE bool open() { return true; }
};

/// Sends K words, from number n on, `stride` apart. Loads do not wait for the slots to open; stores do.
template <typename Unit, unsigned K, class To>
PW_ON_DEVICE bool send_batch(const StridedCopy& copy, unsigned n, unsigned stride, To& to) {
  using Carrier = typename PacketOf<Unit>::Type;
  typename PacketOf<Unit>::Data value[K];
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) {
    long long target, source;
    place(copy, n + k * stride, target, source);
    value[k] = *reinterpret_cast<const Unit*>(copy.from + source);
  }
  if (!to.open()) return false;
  auto* packets = reinterpret_cast<Carrier*>(to.address) + n;
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) store_packet(packets + k * stride, make_packet(value[k], to.flag));
  return true;
}

/// Waits for K packets and stores their words at the targets of the copy. The target addresses are computed
/// while the packets are under way.
template <typename Unit, unsigned K>
PW_ON_DEVICE bool receive_batch(const StridedCopy& copy, const typename PacketOf<Unit>::Type* packets,
                                unsigned n, unsigned stride, unsigned flag, Deadline& deadline) {
  unsigned char* to[K];
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) {
    long long target, source;
    place(copy, n + k * stride, target, source);
    to[k] = copy.to + target;
  }
  typename PacketOf<Unit>::Type packet[K];
  for (bool all = false; !all;) {
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) packet[k] = load_packet(packets + n + k * stride);
    all = true;
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) all = arrived(packet[k], flag) && all;
    if (!all && !deadline.keep_waiting()) return false;
  }
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) *reinterpret_cast<Unit*>(to[k]) = static_cast<Unit>(data_of(packet[k]));
  return true;
}

/// Sends words `first` to `last` - 1 as the packets of those numbers. This thread sends every
/// scope.count()-th, in batches and then one by one. Returns false if the slots do not open.
template <typename Unit, class Scope, class To>
PW_ON_DEVICE bool send_words(const Scope& scope, const StridedCopy& copy, unsigned first, unsigned last,
                             To& to) {
  const unsigned stride = scope.count();
  unsigned n = first + scope.index();
  for (; n + (kInFlight - 1) * stride < last; n += kInFlight * stride)
    if (!send_batch<Unit, kInFlight>(copy, n, stride, to)) return false;
  for (; n < last; n += stride)
    if (!send_batch<Unit, 1>(copy, n, stride, to)) return false;
  return true;
}

/// Waits for packets `first` to `last` - 1 of `slots` and stores their data at the targets of the copy.
/// Returns false if the wait must end.
template <typename Unit, class Scope>
PW_ON_DEVICE bool receive_words(const Scope& scope, const StridedCopy& copy, const unsigned char* slots,
                                unsigned first, unsigned last, unsigned flag, Deadline& deadline) {
  const auto* packets = reinterpret_cast<const typename PacketOf<Unit>::Type*>(slots);
  const unsigned stride = scope.count();
  unsigned n = first + scope.index();
  for (; n + (kInFlight - 1) * stride < last; n += kInFlight * stride)
    if (!receive_batch<Unit, kInFlight>(copy, packets, n, stride, flag, deadline)) return false;
  for (; n < last; n += stride)
    if (!receive_batch<Unit, 1>(copy, packets, n, stride, flag, deadline)) return false;
  return true;
}

}  // namespace detail
}  // namespace peerway::device

#endif
