// What each thread of a copy kernel does. No CUDA beyond `__device__` and `__umulhi`, so that the unit tests
// run the same text on the processor.
#pragma once

#include "copy_arguments.h"

namespace pw::cuda {

__device__ inline unsigned divide(unsigned n, const Divisor& by) {
  return (__umulhi(n, by.magic) + n) >> by.shift;
}

// Moves `to` and `from` to word n.
__device__ inline void place(const CopyArguments& copy, unsigned n, unsigned char*& to,
                             const unsigned char*& from) {
  to = copy.to;
  from = copy.from;
#pragma unroll
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

// Copies every `threads`-th word from `thread` on. Neighbouring threads have neighbouring words, so that
// accesses coalesce; each thread has several loads under way before its first store, because the way to a
// peer is long.
template <typename Word>
__device__ inline void copy_words(const CopyArguments& copy, unsigned thread, unsigned threads) {
  for (unsigned first = thread; first < copy.words; first += kInFlight * threads) {
    Word value[kInFlight];
    unsigned char* to[kInFlight];
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) {
      const unsigned n = first + k * threads;
      if (n >= copy.words) continue;
      const unsigned char* from;
      place(copy, n, to[k], from);
      value[k] = *reinterpret_cast<const Word*>(from);
    }
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k)
      if (first + k * threads < copy.words) *reinterpret_cast<Word*>(to[k]) = value[k];
  }
}

// The bytes of a contiguous copy before its first whole word and after its last one.
template <typename Word>
__device__ inline void copy_edges(const CopyArguments& copy, unsigned thread) {
  const unsigned long long body = static_cast<unsigned long long>(copy.words) * sizeof(Word);
  if (thread < copy.head) {
    *(copy.to - copy.head + thread) = *(copy.from - copy.head + thread);
  } else if (thread - copy.head < copy.tail) {
    *(copy.to + body + (thread - copy.head)) = *(copy.from + body + (thread - copy.head));
  }
}

}  // namespace pw::cuda
