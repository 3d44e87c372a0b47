// Dense packets: the bytes of a message, in order, in packets of 15 bytes and a flag. As with the packets of
// packet.cuh no fence and no signal follows the data, but 16 bytes travel for 15 and not for 8. Each end
// reads or writes its memory in words of its own size.
#ifndef PEERWAY_DEVICE_DENSE_CUH
#define PEERWAY_DEVICE_DENSE_CUH

#include "peerway/device/copy.cuh"
#include "peerway/device/guard.cuh"

namespace peerway::device {

constexpr unsigned kDataOfPacket = 15;  ///< bytes

/// How many dense packets carry so many bytes.
PW_ON_DEVICE constexpr unsigned dense_packets(unsigned bytes) {
  return (bytes + kDataOfPacket - 1) / kDataOfPacket;
}

namespace detail {

constexpr Word kData = ~Word{0} >> 8;  ///< of the half of a packet that has the flag

PW_ON_DEVICE bool arrived(const DensePacket& packet, unsigned flag) {
  return packet.high >> 56 == (flag & 255);
}

/// 8 bytes from byte `skip` (0 to 7) of two words on.
PW_ON_DEVICE Word shifted(Word first, Word second, unsigned skip) {
  return first >> (8 * skip) | second << 1 << (63 - 8 * skip);
}

/// Where the words of a copy lie, from number `first` on.
struct Placed {
  const StridedCopy& copy;
  unsigned first;

  PW_ON_DEVICE const unsigned char* source(unsigned n) const {
    long long to, from;
    place(copy, first + n, to, from);
    return copy.from + from;
  }
  PW_ON_DEVICE unsigned char* target(unsigned n) const {
    long long to, from;
    place(copy, first + n, to, from);
    return copy.to + to;
  }
};

/// Loads 24 bytes of a message of `words` words in memory, from its byte 8 * `at` on; what lies behind the
/// message is zero.
template <typename Unit>
struct Loads;
template <>
struct Loads<Word> {
  template <class Memory>
  PW_ON_DEVICE static void load(const Memory& memory, unsigned words, unsigned at, Word (&part)[3]) {
    PW_UNROLL
    for (unsigned p = 0; p < 3; ++p)
      part[p] = at + p < words ? *reinterpret_cast<const Word*>(memory.source(at + p)) : 0;
  }
};
template <>
struct Loads<Word16> {
  template <class Memory>
  PW_ON_DEVICE static void load(const Memory& memory, unsigned words, unsigned at, Word (&part)[3]) {
    const unsigned n = at / 2;
    Word16 first = {}, second = {};
    if (n < words) first = *reinterpret_cast<const Word16*>(memory.source(n));
    if (n + 1 < words) second = *reinterpret_cast<const Word16*>(memory.source(n + 1));
    const bool odd = at % 2 != 0;
    part[0] = odd ? first.half[1] : first.half[0];
    part[1] = odd ? second.half[0] : first.half[1];
    part[2] = odd ? second.half[1] : second.half[0];
  }
};

/// Packet number n of a message, without its flag.
template <typename Unit, class Memory>
PW_ON_DEVICE DensePacket load_dense(const Memory& memory, unsigned words, unsigned n) {
  const unsigned first = n * kDataOfPacket;  // of its bytes
  Word part[3];
  Loads<Unit>::load(memory, words, first / 8, part);
  return {shifted(part[0], part[1], first % 8), shifted(part[1], part[2], first % 8) & kData};
}

/// 16 bytes of the data of two packets in a row, from byte `skip` (0 to 14) on.
PW_ON_DEVICE Word16 data_of(const DensePacket& first, const DensePacket& second, unsigned skip) {
  const Word part[4] = {first.low, (first.high & kData) | second.low << 56,
                        second.low >> 8 | second.high << 56, (second.high & kData) >> 8};
  const bool far = skip >= 8;
  const Word begin = far ? part[1] : part[0];
  const Word middle = far ? part[2] : part[1];
  const Word end = far ? part[3] : part[2];
  return {{shifted(begin, middle, skip % 8), shifted(middle, end, skip % 8)}};
}

PW_ON_DEVICE void store_word(Word* to, const Word16& value) { *to = value.half[0]; }
PW_ON_DEVICE void store_word(Word16* to, const Word16& value) { *to = value; }

/// Sends a message of `words` words. Loads do not wait for the slots to open; stores do. Returns false if
/// they do not open.
template <typename Unit, class Scope, class Memory, class To>
PW_ON_DEVICE bool send_dense(const Scope& scope, const Memory& memory, unsigned words, To& to) {
  const unsigned packets = dense_packets(words * static_cast<unsigned>(sizeof(Unit)));
  const unsigned stride = scope.count();
  for (unsigned n = scope.index(); n < packets; n += kInFlight * stride) {
    DensePacket packet[kInFlight];
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * stride < packets) packet[k] = load_dense<Unit>(memory, words, n + k * stride);
    if (!to.open()) return false;
    auto* slots = reinterpret_cast<DensePacket*>(to.address);
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * stride < packets)
        store_packet(slots + n + k * stride, {packet[k].low, packet[k].high | Word{to.flag & 255} << 56});
  }
  return true;
}

/// Waits for the packets of a message of `words` words and stores the words in memory. Each thread loads the
/// two packets that its word may lie in. Returns false if the wait must end.
template <typename Unit, class Scope, class Memory>
PW_ON_DEVICE bool receive_dense(const Scope& scope, const Memory& memory, unsigned words,
                                const unsigned char* slots, unsigned flag, Patience& patience) {
  constexpr auto kBytes = static_cast<unsigned>(sizeof(Unit));
  const auto* packets = reinterpret_cast<const DensePacket*>(slots);
  const unsigned last = dense_packets(words * kBytes) - 1;
  const unsigned stride = scope.count();
  for (unsigned n = scope.index(); n < words; n += kInFlight * stride) {
    DensePacket first[kInFlight], second[kInFlight];
    for (bool all = false; !all;) {
      PW_UNROLL
      for (unsigned k = 0; k < kInFlight; ++k) {
        const unsigned word = n + k * stride < words ? n + k * stride : n;
        const unsigned packet = word * kBytes / kDataOfPacket;
        first[k] = load_packet(packets + packet);
        second[k] = load_packet(packets + (packet < last ? packet + 1 : last));
      }
      all = true;
      PW_UNROLL
      for (unsigned k = 0; k < kInFlight; ++k)
        all = arrived(first[k], flag) && arrived(second[k], flag) && all;
      if (!all && !patience.left()) return false;
    }
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * stride < words)
        store_word(reinterpret_cast<Unit*>(memory.target(n + k * stride)),
                   data_of(first[k], second[k], (n + k * stride) * kBytes % kDataOfPacket));
  }
  return true;
}

}  // namespace detail
}  // namespace peerway::device

#endif
