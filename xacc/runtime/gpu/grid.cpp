#include "xacc/runtime/gpu/grid.h"

#include <algorithm>

namespace pwx {
namespace {

constexpr long kMostThreads = 1024, kWarp = 32;
constexpr long kMostX = 0x7fffffff, kMostY = 65535;
constexpr int kBlocksOfProcessor = 2048 / kUsualThreads;
// With more blocks than this a thread does two iterations, because blocks with little work end faster than
// new ones begin (results/xacc/by-hand.jsonl has Himeno's copy and STREAM with two).
constexpr long kManyBlocks = 1 << 13;

long whole_warps(long threads) { return (threads + kWarp - 1) / kWarp * kWarp; }

long rounds(long count, long at_once) { return (count + at_once - 1) / at_once; }

/// Reduces a grid to at most this many blocks, by powers of two in y, so that the block with most work has
/// little of x and y; z gets what they leave.
void share(std::array<long, 3>& grid, long most) {
  const long x = grid[0], y = grid[1];
  long least = 0;
  for (long rows = 1; rows < 2 * y && rows <= most; rows *= 2) {
    const long of_y = std::min(rows, y), of_x = std::min(x, most / of_y);
    const long work = rounds(x, of_x) * rounds(y, of_y);
    if (least != 0 && work >= least) continue;
    least = work;
    grid[0] = rounds(x, rounds(x, of_x));  // no more blocks than need that many rounds
    grid[1] = rounds(y, rounds(y, of_y));
  }
  grid[2] = std::min(grid[2], std::max(most / (grid[0] * grid[1]), 1L));
}

/// The threads of a block.
long threads_of(const pwx_shape& shape, long x) {
  if (shape.executor == PWX_BY_WARP) return kUsualThreads;
  const long usual =
      shape.executor == PWX_BY_BLOCK ? kUsualThreads / 2 : std::min<long>(kUsualThreads, whole_warps(x));
  return std::min(shape.threads > 0 ? shape.threads : usual, kMostThreads);
}

/// The iterations of x that a block executes at once.
long iterations_of_block(pwx_executor executor, long threads) {
  return executor == PWX_BY_THREAD ? threads : executor == PWX_BY_WARP ? threads / kWarp : 1;
}

}  // namespace

unsigned blocks_at_once(int processors, int of_processor) {
  return static_cast<unsigned>(std::max(processors, 1) * std::clamp(of_processor, 1, kBlocksOfProcessor));
}
unsigned most_joined(int processors) { return blocks_at_once(processors, kBlocksOfProcessor); }

Grid grid_of(const pwx_shape& shape, bool reduces, unsigned at_once) {
  const auto at_least_1 = [](long count) { return std::max(count, 1L); };
  const long x = at_least_1(shape.iterations[0]);
  const long threads = threads_of(shape, x), of_block = iterations_of_block(shape.executor, threads);
  long blocks = rounds(x, of_block);
  const long y = std::min(rounds(at_least_1(shape.iterations[1]), at_least_1(shape.y_at_once)), kMostY);
  const long z = std::min(at_least_1(shape.iterations[2]), kMostY);
  if (shape.executor == PWX_BY_THREAD && !reduces && blocks > kManyBlocks / (y * z))
    blocks = (blocks + 1) / 2;
  std::array<long, 3> grid = {std::min(blocks, kMostX), y, z};
  if (reduces || shape.blocks > 0) {
    long most = shape.blocks > 0 ? shape.blocks : kMostX;
    if (reduces) most = std::min<long>(most, at_once);
    share(grid, most);
  }
  return {{static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2])},
          static_cast<unsigned>(threads)};
}

}  // namespace pwx
