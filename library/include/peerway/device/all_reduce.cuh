// An all-reduce inside a kernel: combines elements of all ranks as the kernel computes them, so that what
// follows (a norm, a step of a solver) need not be another kernel. Each thread sends its words as packets to
// every other member and combines the words that come from them: one way over the link, and no fence.
#ifndef PEERWAY_DEVICE_ALL_REDUCE_CUH
#define PEERWAY_DEVICE_ALL_REDUCE_CUH

#include "peerway/device/element.cuh"
#include "peerway/device/packet.cuh"

namespace peerway::device {
namespace detail {

/// How an array is loaded and stored: by elements if they fill units, so that they may have any alignment of
/// their type, and otherwise by units.
template <class Unit, class T, bool fills = sizeof(T) % sizeof(Unit) == 0>
struct PieceOf {
  using Type = Unit;
};
template <class Unit, class T>
struct PieceOf<Unit, T, true> {
  using Type = T;
};

/// The fewest elements that fill packets, and the units of data in these packets: two floats for one packet
/// of 8 bytes, a complex number for two. Arrays consist of Stored, whose alignment may be less.
template <class Unit, class T>
union Carried {
  using Piece = typename PieceOf<Unit, T>::Type;
  // The greatest common divisor of both sizes is a power of two, because a unit is one.
  static constexpr unsigned kBits = sizeof(T) | sizeof(Unit), kCommon = kBits & (~kBits + 1);
  static constexpr unsigned kCount = sizeof(Unit) / kCommon, kUnits = sizeof(T) / kCommon;
  static constexpr unsigned kBytes = kCount * sizeof(T);
  static constexpr unsigned kPieces = kBytes / sizeof(Piece);
  union Stored {
    Piece piece[kPieces];
    T at[kCount];
  };

  PW_ON_DEVICE Carried() {}  // T may have a constructor

  Unit unit[kUnits];
  T at[kCount];
  Piece piece[kPieces];
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

  /// Sends group n to every other member. Groups are what Carried holds.
  template <class T>
  PW_ON_DEVICE void send(Word n, const Carried<Unit, T>& data) const {
    constexpr unsigned kUnits = Carried<Unit, T>::kUnits;
    Carrier packet[kUnits];
    PW_UNROLL
    for (unsigned u = 0; u < kUnits; ++u) packet[u] = make_packet(data.unit[u], flag_);
    for (unsigned m = 0; m < handle_.members; ++m) {
      if (m == handle_.own) continue;
      Carrier* const slots = reinterpret_cast<Carrier*>(handle_.to[m] + offset_) + n * kUnits;
      PW_UNROLL
      for (unsigned u = 0; u < kUnits; ++u) store_packet(slots + u, packet[u]);
    }
  }

  /// Waits for K groups of every other member, from number n on, `stride` apart. Replaces those in `data`,
  /// which are this rank's, by what `op` makes of them and the others in the order of the members. Returns
  /// false if the wait must end.
  template <class T, class Op, unsigned K>
  PW_ON_DEVICE bool combine(Op op, Word n, Word stride, Carried<Unit, T> (&data)[K],
                            Deadline& deadline) const {
    constexpr unsigned kElements = Carried<Unit, T>::kCount, kUnits = Carried<Unit, T>::kUnits;
    typename Wide<T>::Type sum[K][kElements];
    for (unsigned first = 0; first < handle_.members; first += kAtOnce) {
      Carrier packet[kAtOnce][K][kUnits];
      if (!receive(n, stride, first, packet, deadline)) return false;
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (first + i >= handle_.members) break;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k)
          include<T>(op, sum[k], first + i, is_other(first + i) ? carried<T>(packet[i][k]) : data[k]);
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

  // Waits for K groups of the members from number `first` on.
  template <unsigned K, unsigned kUnits>
  PW_ON_DEVICE bool receive(Word n, Word stride, unsigned first, Carrier (&packet)[kAtOnce][K][kUnits],
                            Deadline& deadline) const {
    for (;;) {
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (!is_other(first + i)) continue;
        const auto* const slots =
            reinterpret_cast<const Carrier*>(handle_.from[first + i] + offset_) + n * kUnits;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k) {
          PW_UNROLL
          for (unsigned u = 0; u < kUnits; ++u)
            packet[i][k][u] = load_packet(slots + k * stride * kUnits + u);
        }
      }
      int late = -1;
      PW_UNROLL
      for (unsigned i = 0; i < kAtOnce; ++i) {
        if (!is_other(first + i)) continue;
        PW_UNROLL
        for (unsigned k = 0; k < K; ++k) {
          PW_UNROLL
          for (unsigned u = 0; u < kUnits; ++u)
            if (!arrived(packet[i][k][u], flag_)) late = handle_.rank[first + i];
        }
      }
      if (late < 0) return true;
      if (!deadline.keep_waiting(late)) return false;
    }
  }

  template <class T, unsigned kUnits>
  static PW_ON_DEVICE Carried<Unit, T> carried(const Carrier (&packet)[kUnits]) {
    Carried<Unit, T> data;
    PW_UNROLL
    for (unsigned u = 0; u < kUnits; ++u) data.unit[u] = static_cast<Unit>(data_of(packet[u]));
    return data;
  }

  template <class T, class Op>
  static PW_ON_DEVICE void include(Op op, typename Wide<T>::Type* sum, unsigned member,
                                   const Carried<Unit, T>& operand) {
    PW_UNROLL
    for (unsigned k = 0; k < Carried<Unit, T>::kCount; ++k)
      sum[k] = member == 0 ? widened(operand.at[k]) : op(sum[k], widened(operand.at[k]));
  }

  const pw_all_reduce_handle& handle_;
  unsigned flag_;
  Word offset_;
};

/// The groups of a part, between memory of this rank and the other members.
template <class Unit, class T, class Op>
struct AllReducePart {
  using Data = Carried<Unit, T>;
  using Stored = typename Data::Stored;

  const MemberPackets<Unit>& packets;
  Op op;
  const Stored* from;
  Stored* to;

  template <unsigned K>
  PW_ON_DEVICE void load(Word n, Word stride, Data (&data)[K]) const {
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) {
      PW_UNROLL
      for (unsigned p = 0; p < Data::kPieces; ++p) data[k].piece[p] = from[n + k * stride].piece[p];
    }
  }
  template <unsigned K>
  PW_ON_DEVICE void send(Word n, Word stride) const {
    Data data[K];
    load(n, stride, data);
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) packets.send(n + k * stride, data[k]);
  }
  template <unsigned K>
  PW_ON_DEVICE bool combine(Word n, Word stride, Deadline& deadline) const {
    Data data[K];
    load(n, stride, data);
    if (!packets.combine(op, n, stride, data, deadline)) return false;
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) {
      PW_UNROLL
      for (unsigned p = 0; p < Data::kPieces; ++p) to[n + k * stride].piece[p] = data[k].piece[p];
    }
    return true;
  }
};

constexpr unsigned kCombinedAtOnce = 2;  ///< packets of a member that a thread waits for together

/// How many groups of so many packets have `most` packets together; at least one.
PW_ON_DEVICE constexpr unsigned groups_in(unsigned most, unsigned units) {
  return units < most ? most / units : 1;
}

/// Combines the part of `bytes` bytes that begins at byte `offset`: each thread every scope.count()-th group.
template <class Unit, class T, class Op, class Scope>
PW_ON_DEVICE Result all_reduce_part(const Scope& scope, const pw_all_reduce_handle& handle, Word epoch, Op op,
                                    T* to, const T* from, Word bytes, Word offset) {
  using Part = AllReducePart<Unit, T, Op>;
  using Data = typename Part::Data;
  using Stored = typename Part::Stored;
  constexpr unsigned kSent = groups_in(kInFlight, Data::kUnits);
  constexpr unsigned kCombined = groups_in(kCombinedAtOnce, Data::kUnits);
  const MemberPackets<Unit> packets(handle, epoch, offset / sizeof(Unit));
  const Part part{packets, op, reinterpret_cast<const Stored*>(from), reinterpret_cast<Stored*>(to)};
  const Word groups = bytes / Data::kBytes, stride = scope.count();
  Word n = scope.index();
  for (; n + (kSent - 1) * stride < groups; n += kSent * stride) part.template send<kSent>(n, stride);
  for (; n < groups; n += stride) part.template send<1>(n, stride);

  Deadline deadline(handle.guard, handle.rank[handle.own], epoch);
  bool there = true;
  n = scope.index();
  for (; n + (kCombined - 1) * stride < groups && there; n += kCombined * stride)
    there = part.template combine<kCombined>(n, stride, deadline);
  for (; n < groups && there; n += stride) there = part.template combine<1>(n, stride, deadline);
  return result_of(scope, there, handle.guard);
}

/// Whether arrays at these addresses, and these numbers of bytes, can be cut into pieces and groups.
template <class Unit, class T>
PW_ON_DEVICE bool fits(Word addresses, Word sizes) {
  constexpr Word kAlignment = alignof(typename Carried<Unit, T>::Stored);
  return (addresses & (kAlignment - 1)) == 0 && sizes % sizeof(Unit) == 0;
}

}  // namespace detail

/// Combines `count` elements at `from` with those of all other members, and stores the result at `to`, which
/// may be the same. They are the part of the all-reduce that begins with element `first`; several blocks may
/// each do a part. `op(a, b)` combines two elements, in the order of the members, so all ranks get the same
/// bits. T is any type that can be copied as bytes. Float16, BFloat16, Float8E4M3 and Float8E5M2 stand for
/// the types of CUDA's headers; `op` gets them as float.
///
/// The handle is that of an all-reduce of at least as many bytes; its type and its operation do not matter.
///
/// Epochs count from 1. A part of epoch n + 1 may begin once all_reduce() of epoch n has returned for all of
/// its elements: the scopes of a kernel keep their parts, or another kernel follows in the stream.
///
/// Returns ok once the result is visible to the scope; out_of_range if the part does not fit the all-reduce;
/// misaligned if `count` or `first` is not a multiple of the packets' 8 bytes (4, if the all-reduce has no
/// multiple of 8), or an address, if elements are smaller than that; cancelled, timeout or other_version.
template <class T, class Op, class Scope>
PW_ON_DEVICE Result all_reduce(const Scope& scope, const pw_all_reduce_handle& handle, Word epoch, Op op,
                               T* to, const T* from, Word count, Word first = 0) {
  if (!detail::is_of_this_version(handle)) return Result::other_version;
  const Word bytes = count * sizeof(T), offset = first * sizeof(T), room = handle.slot_bytes / 2;
  if (bytes > room || offset > room - bytes) return Result::out_of_range;
  const Word addresses = reinterpret_cast<Word>(to) | reinterpret_cast<Word>(from), sizes = bytes | offset;
  if (handle.unit == sizeof(Word))
    return detail::fits<Word, T>(addresses, sizes)
               ? detail::all_reduce_part<Word>(scope, handle, epoch, op, to, from, bytes, offset)
               : Result::misaligned;
  if constexpr (alignof(T) < sizeof(Word))
    if (detail::fits<unsigned, T>(addresses, sizes))
      return detail::all_reduce_part<unsigned>(scope, handle, epoch, op, to, from, bytes, offset);
  return Result::misaligned;
}

/// The same with an operation of the library's, in the bits of the same all-reduce on a stream.
template <class T, Combine how = Combine::sum, class Scope>
PW_ON_DEVICE Result all_reduce(const Scope& scope, const pw_all_reduce_handle& handle, Word epoch, T* to,
                               const T* from, Word count, Word first = 0) {
  return all_reduce(scope, handle, epoch, detail::Combined<how>{}, to, from, count, first);
}

}  // namespace peerway::device

#endif
