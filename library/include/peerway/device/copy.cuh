// Block-strided copies by the threads of a scope.
#ifndef PEERWAY_DEVICE_COPY_CUH
#define PEERWAY_DEVICE_COPY_CUH

#include "peerway/device/scope.cuh"

namespace peerway::device {

/// Divides by a multiplication and a shift: n / count == (high half of n * magic + n) >> shift, for every n
/// below 2^31 and count from 1 to 2^31 (Granlund and Montgomery, "Division by invariant integers using
/// multiplication", 1994).
struct Divisor {
  unsigned count;
  unsigned magic;
  unsigned shift;
};

/// One level of a nest of loops over words: `divisor.count` iterations, each advancing `to` and `from` bytes.
struct Level {
  Divisor divisor;
  long long to;
  long long from;
};

constexpr int kInnerLevels = 4;

/// A copy of `words` words. Word number n has one digit per level; its offset is the sum of digit times step
/// over all levels. The innermost level is split off first; the outermost takes the rest and needs no
/// divisor.
struct StridedCopy {
  unsigned char* to;
  const unsigned char* from;
  unsigned words;
  unsigned inner_levels;  ///< entries of `inner` in use; innermost first
  Level inner[kInnerLevels];
  long long outer_to;  ///< bytes
  long long outer_from;
  unsigned head;  ///< single bytes just before `to` and `from` (contiguous copies only), less than a word
  unsigned tail;  ///< single bytes after the last word
};

namespace detail {

struct alignas(16) Word16 {
  Word half[2];
};

PW_ON_DEVICE unsigned divide(unsigned n, const Divisor& by) {
  return (high_product(n, by.magic) + n) >> by.shift;
}

/// Computes the offset of word n from the first word, on both sides.
PW_ON_DEVICE void place(const StridedCopy& copy, unsigned n, long long& to, long long& from) {
  to = 0;
  from = 0;
  PW_UNROLL
  for (unsigned level = 0; level < kInnerLevels; ++level) {
    if (level >= copy.inner_levels) break;  // the same for every thread
    const Level& at = copy.inner[level];
    const unsigned rest = divide(n, at.divisor);
    const long long digit = n - rest * at.divisor.count;
    to += digit * at.to;
    from += digit * at.from;
    n = rest;
  }
  to += static_cast<long long>(n) * copy.outer_to;
  from += static_cast<long long>(n) * copy.outer_from;
}

constexpr unsigned kInFlight = 4;  ///< words that a thread loads before it stores the first

/// Words of one size, known when the code is compiled.
template <typename Unit>
struct WordsOf {
  using Value = Unit;

  PW_ON_DEVICE Value load(const unsigned char* from) const { return *reinterpret_cast<const Unit*>(from); }
  PW_ON_DEVICE void store(unsigned char* to, const Value& value) const {
    *reinterpret_cast<Unit*>(to) = value;
  }
};

/// Words of 8, 4, 2 or 1 bytes.
struct WordsUpTo8 {
  using Value = Word;
  unsigned bytes;

  PW_ON_DEVICE Value load(const unsigned char* from) const {
    switch (bytes) {
      case 8:
        return *reinterpret_cast<const Word*>(from);
      case 4:
        return *reinterpret_cast<const unsigned*>(from);
      case 2:
        return *reinterpret_cast<const unsigned short*>(from);
      default:
        return *from;
    }
  }
  PW_ON_DEVICE void store(unsigned char* to, Value value) const {
    switch (bytes) {
      case 8:
        *reinterpret_cast<Word*>(to) = value;
        return;
      case 4:
        *reinterpret_cast<unsigned*>(to) = static_cast<unsigned>(value);
        return;
      case 2:
        *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(value);
        return;
      default:
        *to = static_cast<unsigned char>(value);
    }
  }
};

/// Words of 16, 8, 4, 2 or 1 bytes. One loop serves all sizes, because five loops would need more registers
/// than a block of 512 threads has.
struct AnyWords {
  using Value = Word16;
  unsigned bytes;

  PW_ON_DEVICE Value load(const unsigned char* from) const {
    if (bytes == 16) return *reinterpret_cast<const Word16*>(from);
    Value value;
    value.half[0] = WordsUpTo8{bytes}.load(from);
    return value;
  }
  PW_ON_DEVICE void store(unsigned char* to, const Value& value) const {
    if (bytes == 16)
      *reinterpret_cast<Word16*>(to) = value;
    else
      WordsUpTo8{bytes}.store(to, value.half[0]);
  }
};

/// A target that may be stored to at once. Other target types have an address only after open() has returned
/// true.
struct OpenTarget {
  unsigned char* address;
  PW_ON_DEVICE bool open() const { return true; }
};

/// Copies words `first` to `last` - 1; this thread copies every `threads`-th. Neighbouring threads copy
/// neighbouring words, so that accesses coalesce. Each thread loads several words before its first store,
/// because the latency to a peer is long. Only stores wait for the target to open. Returns false if the
/// target does not open. The addresses in `to` and `from` replace those in `copy`.
template <class Words, class To>
PW_ON_DEVICE bool copy_words(const Words& words, const StridedCopy& copy, To& to, const unsigned char* from,
                             unsigned first, unsigned last, unsigned thread, unsigned threads) {
  for (unsigned n = first + thread; n < last; n += kInFlight * threads) {
    typename Words::Value value[kInFlight];
    long long at[kInFlight];
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k) {
      if (n + k * threads >= last) continue;
      long long source;
      place(copy, n + k * threads, at[k], source);
      value[k] = words.load(from + source);
    }
    if (!to.open()) return false;
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * threads < last) words.store(to.address + at[k], value[k]);
  }
  return true;
}

/// Like copy_words(), for words that are contiguous on both sides.
template <typename Unit, class To>
PW_ON_DEVICE bool copy_flat(To& to, const unsigned char* from, unsigned first, unsigned last, unsigned thread,
                            unsigned threads) {
  const auto* source = reinterpret_cast<const Unit*>(from);
  for (unsigned n = first + thread; n < last; n += kInFlight * threads) {
    Unit value[kInFlight];
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * threads < last) value[k] = source[n + k * threads];
    if (!to.open()) return false;
    auto* target = reinterpret_cast<Unit*>(to.address);
    PW_UNROLL
    for (unsigned k = 0; k < kInFlight; ++k)
      if (n + k * threads < last) target[n + k * threads] = value[k];
  }
  return true;
}

/// The bytes of a contiguous copy before its first whole word and after its last one; fewer than 32 in all.
PW_ON_DEVICE void copy_edges(const StridedCopy& copy, unsigned char* to, const unsigned char* from,
                             unsigned long long body_bytes, unsigned thread, unsigned threads) {
  for (unsigned n = thread; n < copy.head + copy.tail; n += threads) {
    const bool before = n < copy.head;
    const long long at =
        before ? static_cast<long long>(n) - copy.head : static_cast<long long>(body_bytes) + (n - copy.head);
    to[at] = from[at];
  }
}

/// copy_flat() for words of 16, 8, 4 or 1 bytes.
template <class To>
PW_ON_DEVICE void copy_flat_of(unsigned word_bytes, To to, const unsigned char* from, unsigned words,
                               unsigned thread, unsigned threads) {
  switch (word_bytes) {
    case 16:
      copy_flat<Word16>(to, from, 0, words, thread, threads);
      return;
    case 8:
      copy_flat<Word>(to, from, 0, words, thread, threads);
      return;
    case 4:
      copy_flat<unsigned>(to, from, 0, words, thread, threads);
      return;
    default:
      copy_flat<unsigned char>(to, from, 0, words, thread, threads);
  }
}

}  // namespace detail

/// Copies `bytes` contiguous bytes, in words of 16 bytes if both addresses are equal modulo 16, else of 8, 4
/// or 1.
template <class Scope>
PW_ON_DEVICE void copy(const Scope& scope, void* to, const void* from, unsigned long long bytes) {
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  const auto distance =
      reinterpret_cast<unsigned long long>(target) ^ reinterpret_cast<unsigned long long>(source);
  const unsigned unit = (distance & 15) == 0 ? 16 : (distance & 7) == 0 ? 8 : (distance & 3) == 0 ? 4 : 1;
  unsigned long long head = -reinterpret_cast<unsigned long long>(target) & (unit - 1);
  if (head > bytes) head = bytes;
  // Copies in pieces, because StridedCopy counts words in 32 bits.
  constexpr unsigned long long kPiece = 1ull << 30;
  StridedCopy piece{};
  piece.head = static_cast<unsigned>(head);
  const unsigned long long body = (bytes - head) / unit * unit;
  piece.tail = static_cast<unsigned>(bytes - head - body);
  detail::copy_edges(piece, target + head, source + head, body, scope.index(), scope.count());
  for (unsigned long long done = 0; done < body; done += kPiece) {
    const unsigned long long now = body - done < kPiece ? body - done : kPiece;
    detail::copy_flat_of(unit, detail::OpenTarget{target + head + done}, source + head + done,
                         static_cast<unsigned>(now / unit), scope.index(), scope.count());
  }
}

}  // namespace peerway::device

#endif
