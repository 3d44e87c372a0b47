// How large a grid a kernel gets. Pure.
#pragma once

#include <array>

#include "peerway/xacc/acc.h"

namespace pwx {

struct Grid {
  std::array<unsigned, 3> blocks;
  unsigned threads;

  bool operator==(const Grid&) const = default;
};

/// A block has at most 1024 threads. `blocks` of the shape bounds those of all dimensions together. A kernel
/// with reductions gets only as many as run at once, since the last one joins what the others found.
Grid grid_of(const pwx_shape& shape, bool reduces, int processors);

/// The most blocks of a kernel with reductions.
unsigned most_joined(int processors);

}  // namespace pwx
