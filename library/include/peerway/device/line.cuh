// Lines: packets of 128 bytes with one flag. NVLink and the memory of today's GPUs carry 128 bytes as a whole
// when 16 neighbouring threads store or load them together. So one flag covers 15 words of data, and lines,
// like packets, need no fence and no signal after them. Where this property cannot be relied on, plans use
// packets. (The CUDA memory model does not promise it. NCCL's LL128 protocol relies on the same property, and
// library/tests/gpu/programs/plan_check looks for lines that mix two epochs.)
#ifndef PEERWAY_DEVICE_LINE_CUH
#define PEERWAY_DEVICE_LINE_CUH

#include "peerway/device/copy.cuh"
#include "peerway/device/guard.cuh"

namespace peerway::device {

constexpr unsigned kWordsOfLine = 15;
constexpr unsigned kThreadsOfLine = kWordsOfLine + 1;

/// Each word carries one word of the message, which has 8, 4, 2 or 1 bytes.
struct alignas(128) Line {
  Word word[kWordsOfLine];
  Word flag;
};

namespace detail {

/// Returns how many lines carry `words` words.
PW_ON_DEVICE constexpr unsigned lines_of(unsigned words) { return (words + kWordsOfLine - 1) / kWordsOfLine; }

/// Return the address of word `n` of a copy, at the source and at the target.
PW_ON_DEVICE const unsigned char* source_of(const StridedCopy& copy, unsigned n) {
  long long target, source;
  place(copy, n, target, source);
  return copy.from + source;
}
PW_ON_DEVICE unsigned char* target_of(const StridedCopy& copy, unsigned n) {
  long long target, source;
  place(copy, n, target, source);
  return copy.to + target;
}

/// Lines `first` to `last` - 1 of a message of `words` words; a scope sends or receives them.
struct Lines {
  unsigned first, last, words;
};

/// Sends a line by one thread: it stores the flag after a fence.
template <class Words, class To>
PW_ON_DEVICE bool send_line(const Words& words, const StridedCopy& copy, unsigned number, unsigned last,
                            To& to) {
  if (!to.open()) return false;
  Line& line = reinterpret_cast<Line*>(to.address)[number];
  for (unsigned w = 0, n = number * kWordsOfLine; w < kWordsOfLine && n < last; ++w, ++n)
    store_relaxed(&line.word[w], words.load(source_of(copy, n)));
  store_release(&line.flag, Word{to.flag});
  return true;
}

template <class Words>
PW_ON_DEVICE bool receive_line(const Words& words, const StridedCopy& copy, const unsigned char* slots,
                               unsigned number, unsigned last, Word flag, Deadline& deadline) {
  const Line& line = reinterpret_cast<const Line*>(slots)[number];
  while (load_acquire(&line.flag) != flag)
    if (!deadline.keep_waiting()) return false;
  for (unsigned w = 0, n = number * kWordsOfLine; w < kWordsOfLine && n < last; ++w, ++n)
    words.store(target_of(copy, n), load_relaxed(&line.word[w]));
  return true;
}

#if defined(PW_ON_NVIDIA)

/// How the whole warps of a scope share lines. A warp handles two lines at a time: each of its threads has
/// one word of one of the two.
struct LineWarps {
  unsigned word;   ///< this thread's word; the last word of a line is the flag
  unsigned own;    ///< 0 or 1: which of the warp's two lines this thread works on
  unsigned first;  ///< first line of this warp
  unsigned step;   ///< number of lines that all warps handle at a time

  template <class Scope>
  PW_ON_DEVICE explicit LineWarps(const Scope& scope)
      : word(scope.index() % kThreadsOfLine),
        own(scope.index() / kThreadsOfLine % 2),
        first(scope.index() / 32 * 2),
        step(scope.count() / 32 * 2) {}
  PW_ON_DEVICE bool has_flag() const { return word == kWordsOfLine; }
  static PW_ON_DEVICE bool all(bool yes) { return __all_sync(0xffffffffu, yes) != 0; }
};

/// Sends lines with K pairs of lines per warp in flight. Loads do not wait for the slots to open. A thread
/// whose word is past the end of the message loads the first word instead: a branch would take longer.
template <unsigned K, class Words, class To>
PW_ON_DEVICE bool send_by_warps(const LineWarps& warps, const Words& words, const StridedCopy& copy,
                                const Lines& lines, To& to) {
  for (unsigned pair = lines.first + warps.first; pair < lines.last; pair += K * warps.step) {
    const unsigned line = pair + warps.own;
    Word value[K];
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) {
      const unsigned n = (line + k * warps.step) * kWordsOfLine + warps.word;
      value[k] = words.load(source_of(copy, n < lines.words ? n : 0));
    }
    if (!to.open()) return false;
    Word* const at = reinterpret_cast<Word*>(to.address) + line * kThreadsOfLine + warps.word;
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k)
      if (line + k * warps.step < lines.last)
        store_volatile(at + k * warps.step * kThreadsOfLine, warps.has_flag() ? Word{to.flag} : value[k]);
  }
  return true;
}

/// Receives lines. The votes make one decision for the whole warp: its threads load lines together, and no
/// thread waits for one that has given up.
template <unsigned K, class Words>
PW_ON_DEVICE bool receive_by_warps(const LineWarps& warps, const Words& words, const StridedCopy& copy,
                                   const unsigned char* slots, const Lines& lines, Word flag,
                                   Deadline& deadline) {
  for (unsigned pair = lines.first + warps.first; pair < lines.last; pair += K * warps.step) {
    const unsigned line = pair + warps.own;
    const Word* const at = reinterpret_cast<const Word*>(slots) + line * kThreadsOfLine + warps.word;
    Word value[K];
    for (;;) {
      bool all = true;
      PW_UNROLL
      for (unsigned k = 0; k < K; ++k)
        value[k] =
            line + k * warps.step < lines.last ? load_volatile(at + k * warps.step * kThreadsOfLine) : flag;
      PW_UNROLL
      for (unsigned k = 0; k < K; ++k) all = value[k] == flag && all;
      if (LineWarps::all(!warps.has_flag() || all)) break;
      if (!LineWarps::all(deadline.keep_waiting())) return false;
    }
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) {
      const unsigned n = (line + k * warps.step) * kWordsOfLine + warps.word;
      if (!warps.has_flag() && line + k * warps.step < lines.last && n < lines.words)
        words.store(target_of(copy, n), value[k]);
    }
  }
  return true;
}

#endif

/// Sends these lines, K pairs per warp at a time. If the scope is smaller than a warp, or runs on a CPU or an
/// AMD GPU, each thread sends whole lines. Returns false if the slots do not open.
template <unsigned K = kInFlight, class Words, class Scope, class To>
PW_ON_DEVICE bool send_lines(const Scope& scope, const Words& words, const StridedCopy& copy,
                             const Lines& lines, To& to) {
#if defined(PW_ON_NVIDIA)
  const LineWarps warps(scope);
  if (warps.step > 0) return warps.first >= warps.step || send_by_warps<K>(warps, words, copy, lines, to);
#endif
  for (unsigned line = lines.first + scope.index(); line < lines.last; line += scope.count())
    if (!send_line(words, copy, line, lines.words, to)) return false;
  return true;
}

/// Waits for these lines in `slots` and stores their words at the targets of the copy. Returns false if the
/// wait must end.
template <unsigned K = kInFlight, class Words, class Scope>
PW_ON_DEVICE bool receive_lines(const Scope& scope, const Words& words, const StridedCopy& copy,
                                const unsigned char* slots, const Lines& lines, unsigned flag,
                                Deadline& deadline) {
#if defined(PW_ON_NVIDIA)
  const LineWarps warps(scope);
  if (warps.step > 0)
    return warps.first >= warps.step ||
           receive_by_warps<K>(warps, words, copy, slots, lines, Word{flag}, deadline);
#endif
  for (unsigned line = lines.first + scope.index(); line < lines.last; line += scope.count())
    if (!receive_line(words, copy, slots, line, lines.words, Word{flag}, deadline)) return false;
  return true;
}

}  // namespace detail
}  // namespace peerway::device

#endif
