#include "device/cuda/launch.h"

#include <algorithm>

namespace pw::cuda {
namespace {

// How often the block is cut into words; a whole number by the choice of the word.
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
