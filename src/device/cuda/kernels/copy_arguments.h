// What the copy kernels are given, by value. Read by the host compiler and by NVRTC: plain types only.
#pragma once

namespace pw::cuda {

// A divisor that divides by a multiplication and a shift: n / count == (high half of n * magic + n) >> shift,
// for every n below 2^31 and count from 1 to 2^31 (Granlund and Montgomery, "Division by invariant integers
// using multiplication", 1994).
struct Divisor {
  unsigned count;
  unsigned magic;
  unsigned shift;
};

// One level of a nest of loops over words: `divisor.count` steps of `to` and `from` bytes.
struct Level {
  Divisor divisor;
  long long to;
  long long from;
};

constexpr int kInnerLevels = 4;
constexpr unsigned kThreads = 256;        // of a block
constexpr unsigned kInFlight = 4;         // words that a thread loads before it stores the first
constexpr unsigned kBlocksPerSm = 4;      // enough loads in flight to fill NVLink and the memory
constexpr unsigned kMaxWords = 1u << 30;  // of one launch, so that 32 bits count them

// A copy of `words` words. Word n lies at the sum, over the levels, of its digit times the level's step:
// digit of the innermost level first; the outermost level has what is left and needs no divisor.
struct CopyArguments {
  unsigned char* to;
  const unsigned char* from;
  unsigned words;
  unsigned inner_levels;  // of `inner` in use; innermost first
  Level inner[kInnerLevels];
  long long outer_to;  // bytes
  long long outer_from;
  unsigned head;  // single bytes just before `to` and `from` (contiguous copies only), less than a word
  unsigned tail;  // single bytes after the last word
  unsigned long long* signal;  // null: no signal
  unsigned long long value;    // stored in *signal once everything is visible to all
  unsigned* finished;          // counts the blocks that are done; zero before and after each launch
};

}  // namespace pw::cuda
