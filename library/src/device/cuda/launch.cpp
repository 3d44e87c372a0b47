#include "device/cuda/launch.h"

#include <algorithm>

namespace pw::cuda {
namespace {

// Returns the number of words of the copy. The word size divides all sizes, so this is a whole number.
uint64_t words_of(const Copy& copy) { return copy.layout.shape.bytes() / word_bytes(copy); }

}  // namespace

bool fits_one_launch(const Copy& copy) { return words_of(copy) <= kMaxWords; }

CopyLaunch make_launch(const Copy& copy, unsigned sms) {
  CopyLaunch launch{};
  launch.word_bytes = word_bytes(copy);
  launch.arguments.copy = strided(copy, launch.word_bytes);
  const unsigned wanted = (launch.arguments.copy.words + kThreads - 1) / kThreads;
  launch.blocks = std::clamp(wanted, 1u, std::max(1u, sms) * kBlocksPerSm);
  return launch;
}

}  // namespace pw::cuda
