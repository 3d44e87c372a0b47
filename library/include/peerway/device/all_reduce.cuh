// An all-reduce inside a kernel: combines elements of all ranks as the kernel computes them, so that what
// follows (a norm, a step of a solver) need not be another kernel. Each thread sends its words as packets to
// every other member and combines the words that come from them: one way over the link, and no fence.
#ifndef PEERWAY_DEVICE_ALL_REDUCE_CUH
#define PEERWAY_DEVICE_ALL_REDUCE_CUH

#include "peerway/device/element.cuh"
#include "peerway/device/packet.cuh"

namespace peerway::device {
namespace detail {

/// The data of one packet, and the elements in it.
template <class Unit, class T>
union Carried {
  static constexpr unsigned kCount = sizeof(Unit) / sizeof(T);
  Unit unit;
  T at[kCount];
};

/// The packets of one epoch and one part, between this rank and the other members.
template <class Unit>
class MemberPackets {
 public:
  using Carrier = typename PacketOf<Unit>::Type;

  /// `first` is the number of the part's first word.
  PW_ON_DEVICE MemberPackets(const pw_all_reduce_handle& handle, Word epoch, Word first)
      : handle_(handle),
        flag_(static_cast<unsigned>(epoch)),
        offset_((epoch & 1) * handle.slot_bytes + first * sizeof(Carrier)) {}

  /// Sends word n to every other member.
  PW_ON_DEVICE void send(Word n, Unit data) const {
    const Carrier packet = make_packet(data, flag_);
    for (unsigned m = 0; m < handle_.members; ++m)
      if (m != handle_.own) store_packet(reinterpret_cast<Carrier*>(handle_.to[m] + offset_) + n, packet);
  }

  /// Waits for K words of every other member, from number n on, `stride` apart. Replaces the words in `data`,
  /// which are this rank's, by what they give combined with the others in the order of the members. Returns
  /// false if the wait must end.
  template <class T, Combine how, unsigned K>
  PW_ON_DEVICE bool combine(Word n, Word stride, Carried<Unit, T> (&data)[K], Deadline& deadline) const {
    constexpr unsigned kElements = Carried<Unit, T>::kCount;
    typename Wide<T>::Type sum[K][kElements];
    for (unsigned first = 0; first < handle_.members; first += kAtOnce) {
      Carrier packet[kAtOnce][K];
      if (!receive(n, stride, first, packet, deadline)) return false;
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (first + i >= handle_.members) break;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k)
          include<T, how>(sum[k], first + i, is_other(first + i) ? carried<T>(packet[i][k]) : data[k]);
      }
    }
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) {
      PW_UNROLL
      for (unsigned e = 0; e < kElements; ++e) data[k].at[e] = rounded(sum[k][e], T{});
    }
    return true;
  }

 private:
  static constexpr unsigned kAtOnce = 4;  // members whose packets a thread waits for together

  PW_ON_DEVICE bool is_other(unsigned member) const {
    return member < handle_.members && member != handle_.own;
  }

  // Waits for K words of the members from number `first` on.
  template <unsigned K>
  PW_ON_DEVICE bool receive(Word n, Word stride, unsigned first, Carrier (&packet)[kAtOnce][K],
                            Deadline& deadline) const {
    for (;;) {
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (!is_other(first + i)) continue;
        const auto* const slots = reinterpret_cast<const Carrier*>(handle_.from[first + i] + offset_) + n;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k) packet[i][k] = load_packet(slots + k * stride);
      }
      int late = -1;
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (!is_other(first + i)) continue;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k)
          if (!arrived(packet[i][k], flag_)) late = handle_.rank[first + i];
      }
      if (late < 0) return true;
      if (!deadline.keep_waiting(late)) return false;
    }
  }

  template <class T>
  static PW_ON_DEVICE Carried<Unit, T> carried(const Carrier& packet) {
    Carried<Unit, T> data;
    data.unit = static_cast<Unit>(data_of(packet));
    return data;
  }

  template <class T, Combine how>
  static PW_ON_DEVICE void include(typename Wide<T>::Type* sum, unsigned member,
                                   const Carried<Unit, T>& operand) {
    PW_UNROLL
    for (unsigned k = 0; k < Carried<Unit, T>::kCount; ++k)
      sum[k] = member == 0 ? widened(operand.at[k])
                           : combined<how, typename Wide<T>::Type>(sum[k], widened(operand.at[k]));
  }

  const pw_all_reduce_handle& handle_;
  unsigned flag_;
  Word offset_;
};

/// The words of a part that begins with word `first`, between memory of this rank and the other members.
template <class Unit, class T, Combine how>
struct AllReducePart {
  using Data = Carried<Unit, T>;

  const MemberPackets<Unit>& packets;
  const Data* from;
  Data* to;

  template <unsigned K>
  PW_ON_DEVICE void load(Word n, Word stride, Data (&data)[K]) const {
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) data[k].unit = from[n + k * stride].unit;
  }
  template <unsigned K>
  PW_ON_DEVICE void send(Word n, Word stride) const {
    Data data[K];
    load(n, stride, data);
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) packets.send(n + k * stride, data[k].unit);
  }
  template <unsigned K>
  PW_ON_DEVICE bool combine(Word n, Word stride, Deadline& deadline) const {
    Data data[K];
    load(n, stride, data);
    if (!packets.template combine<T, how>(n, stride, data, deadline)) return false;
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) to[n + k * stride].unit = data[k].unit;
    return true;
  }
};

constexpr unsigned kCombinedAtOnce = 2;  ///< words that a thread waits for together

/// Combines the part of `words` words that begins with word `first`: each thread every scope.count()-th.
template <class Unit, class T, Combine how, class Scope>
PW_ON_DEVICE Result all_reduce_words(const Scope& scope, const pw_all_reduce_handle& handle, Word epoch,
                                     T* to, const T* from, Word words, Word first) {
  using Part = AllReducePart<Unit, T, how>;
  using Data = typename Part::Data;
  const MemberPackets<Unit> packets(handle, epoch, first);
  const Part part{packets, reinterpret_cast<const Data*>(from), reinterpret_cast<Data*>(to)};
  const Word stride = scope.count();
  Word n = scope.index();
  for (; n + (kInFlight - 1) * stride < words; n += kInFlight * stride)
    part.template send<kInFlight>(n, stride);
  for (; n < words; n += stride) part.template send<1>(n, stride);

  Deadline deadline(handle.guard, handle.rank[handle.own], epoch);
  bool there = true;
  n = scope.index();
  for (; n + (kCombinedAtOnce - 1) * stride < words && there; n += kCombinedAtOnce * stride)
    there = part.template combine<kCombinedAtOnce>(n, stride, deadline);
  for (; n < words && there; n += stride) there = part.template combine<1>(n, stride, deadline);
  return result_of(scope, there, handle.guard);
}

}  // namespace detail

/// Combines `count` elements at `from` with those of all other members, and stores the result at `to`, which
/// may be the same. They are the part of the all-reduce that begins with element `first`; several blocks may
/// each do a part. Elements are combined in the order of the members, so all ranks get the same bits.
/// Float16, BFloat16, Float8E4M3 and Float8E5M2 stand for the types of CUDA's headers.
///
/// Epochs count from 1. A part of epoch n + 1 may begin once all_reduce() of epoch n has returned for all of
/// its elements: the scopes of a kernel keep their parts, or another kernel follows in the stream.
///
/// Returns ok once the result is visible to the scope; out_of_range if the part does not fit the all-reduce;
/// misaligned if an address, `count` or `first` is not a multiple of the packets' 8 bytes (4, if the
/// all-reduce has no multiple of 8); cancelled, timeout or other_version.
template <class T, Combine how = Combine::sum, class Scope>
PW_ON_DEVICE Result all_reduce(const Scope& scope, const pw_all_reduce_handle& handle, Word epoch, T* to,
                               const T* from, Word count, Word first = 0) {
  if (!detail::is_of_this_version(handle)) return Result::other_version;
  const Word bytes = count * sizeof(T), offset = first * sizeof(T), room = handle.slot_bytes / 2;
  if (bytes > room || offset > room - bytes) return Result::out_of_range;
  const Word bits = reinterpret_cast<Word>(to) | reinterpret_cast<Word>(from) | bytes | offset;
  if ((bits & (handle.unit - 1)) != 0) return Result::misaligned;
  if (handle.unit == sizeof(Word))
    return detail::all_reduce_words<Word, T, how>(scope, handle, epoch, to, from, bytes / sizeof(Word),
                                                  offset / sizeof(Word));
  if constexpr (sizeof(T) <= sizeof(unsigned))
    return detail::all_reduce_words<unsigned, T, how>(scope, handle, epoch, to, from,
                                                      bytes / sizeof(unsigned), offset / sizeof(unsigned));
  return Result::misaligned;
}

}  // namespace peerway::device

#endif
