// Computes the size of a kernel's grid. Pure functions.
#pragma once

#include <array>

#include "peerway/xacc/acc.h"

namespace pwx {

struct Grid {
  std::array<unsigned, 3> blocks;
  unsigned threads;

  bool operator==(const Grid&) const = default;
};

/// The grid of a kernel. A block has at most 1024 threads. `blocks` of the shape limits the blocks of all
/// dimensions together. A kernel with reductions gets only as many blocks as run `at_once`, since the last
/// block combines the results of all, and each of them has more to do. With very many blocks each thread of
/// another kernel does two iterations.
Grid grid_of(const pwx_shape& shape, bool reduces, unsigned at_once);

constexpr int kUsualThreads = 256;  ///< of a block
/// The most blocks that run at once, if a multiprocessor runs so many blocks of a kernel.
unsigned blocks_at_once(int processors, int of_processor);
/// The same for any kernel.
unsigned most_joined(int processors);

}  // namespace pwx
