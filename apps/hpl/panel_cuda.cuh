// Kernels of the panel factorization on the GPUs of a process column; a single GPU is a column of one. A leaf
// of up to 32 columns lies in the shared memory of some blocks of each GPU, each with its share of the rows,
// from the first column to the last. A pivot costs one message from each block to each GPU, where all blocks
// read it from the L2 cache.
#ifndef HPL_PANEL_CUDA_CUH
#define HPL_PANEL_CUDA_CUH

#include "leaf_cuda.cuh"

namespace hpl {

constexpr int kLeafBytes = 212992;  // of a block's shared memory, for its rows
#ifndef HPL_ON_CPU
constexpr int kLeafThreads = 512;
/// Returns the shared memory of the block.
__device__ inline double* shared_memory() {
  extern __shared__ double memory[];
  return memory;
}
#endif

struct Best {
  double magnitude;
  int index;
};
__device__ inline Best better(Best a, Best b) {
  return b.magnitude > a.magnitude || (b.magnitude == a.magnitude && b.index < a.index) ? b : a;
}
/// Compares the halves of the magnitude, which have the same order as integers; the magnitude of no candidate
/// is -1.
__device__ inline Best best_of_warp(Best mine) {
  constexpr unsigned kAll = 0xffffffffu;
  const long long bits = __double_as_longlong(mine.magnitude);
  const int high = static_cast<int>(bits >> 32);
  const auto low = static_cast<unsigned>(bits);
  const int best_high = __reduce_max_sync(kAll, high);
  const unsigned best_low = __reduce_max_sync(kAll, high == best_high ? low : 0u);
  const bool is_best = high == best_high && low == best_low;
  const int index = __reduce_min_sync(kAll, is_best ? mine.index : 1 << 30);
  return {__longlong_as_double(static_cast<long long>(best_high) << 32 | best_low), index};
}

/// Number of loads that are under way together when no store is between them.
constexpr int kTogether = 8;

/// Returns which of the `blocks` blocks of all ranks has the best candidate, the same at all ranks;
/// `otherwise` if no block has one because all are NaN. A warp must call it. All loads are under way at once.
__device__ inline int best_block(const LeafMail& mail, unsigned long long number, int blocks, int otherwise) {
  constexpr int kEach = kLeafMaxBlocks / 32;
  const int lane = threadIdx.x % 32;
  FlaggedValue seen[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (lane + 32 * i < blocks) seen[i] = look(&mail.magnitude[lane + 32 * i]);
  Best best{-1, 1 << 30};
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int block = lane + 32 * i;
    if (block >= blocks) continue;
    while (seen[i].number != number) seen[i] = look(&mail.magnitude[block]);
    best = better(best, {seen[i].value, block});
  }
  best = best_of_warp(best);
  return best.magnitude >= 0 ? best.index : otherwise;
}

__global__ void __launch_bounds__(kLeafThreads, 1) factorize_leaf(const Leaf leaf) {
  double* part = shared_memory();  // by columns
  __shared__ double pivot_row[kLeafColumns];
  __shared__ long long chosen_row[kLeafColumns];
  __shared__ int chosen_rank[kLeafColumns];
  __shared__ Best of_warps[kLeafThreads / 32];
  const int thread = threadIdx.x, block = blockIdx.x, share = leaf.share, width = leaf.width;
  const int ranks = static_cast<int>(leaf.rows.ranks), mine_is = static_cast<int>(leaf.rows.mine);
  const int blocks = static_cast<int>(gridDim.x), me = mine_is * blocks + block;
  const bool has_top = leaf.is_top() && block == 0;
  const long long begin = (leaf.is_top() ? leaf.column : 0) + static_cast<long long>(block) * share;
  // Every rank has as many blocks as the rank with the most rows, so some blocks may have no rows.
  const int rows = static_cast<int>(max(min(static_cast<long long>(share), leaf.count - begin), 0LL));
  double* columns = leaf.body + leaf.column * leaf.ld + begin;
  for (int i = thread; i < rows; i += kLeafThreads)
    for (int first = 0; first < width; first += kTogether) {
      double held[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k)
        if (first + k < width) held[k] = columns[(first + k) * leaf.ld + i];
#pragma unroll
      for (int k = 0; k < kTogether; ++k)
        if (first + k < width) part[(first + k) * share + i] = held[k];
    }
  Best mine{-1, 1 << 30};
  for (int i = thread; i < rows; i += kLeafThreads) mine = better(mine, {fabs(part[i]), i});

  for (int j = 0; j < width; ++j) {
    const unsigned long long number = leaf.number + j;
    const int turn = static_cast<int>(number % 2);
    mine = best_of_warp(mine);
    if (thread % 32 == 0) of_warps[thread / 32] = mine;
    __syncthreads();
    if (thread < 32) {  // only one warp, so that only the messages take time
      mine = best_of_warp(thread < kLeafThreads / 32 ? of_warps[thread] : Best{-1, 1 << 30});
      const int here = mine.index < rows ? mine.index
                       : has_top         ? j
                                         : max(rows - 1, 0);  // if all are NaN, any row
      if (thread < ranks) store_flagged(&leaf.room[thread]->mail[turn].magnitude[me], mine.magnitude, number);
      const double value = thread < width ? part[thread * share + here] : 0;
      const double old = has_top && thread < width ? part[thread * share + j] : 0;
      for (int p = 0; p < ranks; ++p) {
        LeafMail& theirs = leaf.room[p]->mail[turn];
        if (thread < width) store_flagged(&theirs.values[me][thread], value, number);
        if (has_top && thread < width) store_flagged(&theirs.top[thread], old, number);
      }
      if (thread < ranks)
        store_flagged(&leaf.room[thread]->mail[turn].row[me], static_cast<double>(leaf.before + begin + here),
                      number);
      const LeafMail& mail = leaf.room[mine_is]->mail[turn];
      const int chosen = best_block(mail, number, ranks * blocks, leaf.top * blocks);
      if (thread < width) {
        const double best = await_flagged(&mail.values[chosen][thread], number);
        pivot_row[thread] = best;
        if (me == chosen) part[thread * share + here] = await_flagged(&mail.top[thread], number);
        if (block == 0) leaf.square[(leaf.column + thread) * leaf.panel_width + leaf.column + j] = best;
      }
      if (block == 0 && thread == 0) {
        chosen_row[j] = static_cast<long long>(await_flagged(&mail.row[chosen], number));
        chosen_rank[j] = chosen / blocks;
      }
    }
    __syncthreads();
    // Subtract the pivot row's multiple from the rows below.
    const double pivot = pivot_row[j];
    if (pivot == 0) {
      if (block == 0 && thread == 0 && *leaf.info == 0) *leaf.info = leaf.first + leaf.column + j + 1;
    }
    const double inverse = pivot == 0 ? 1 : 1 / pivot;
    mine = {-1, 1 << 30};
    for (int i = thread + (has_top ? j + 1 : 0); i < rows; i += kLeafThreads) {
      const double multiple = part[j * share + i] * inverse;
      part[j * share + i] = multiple;
      if (pivot == 0) {
        if (j + 1 < width) mine = better(mine, {fabs(part[(j + 1) * share + i]), i});
        continue;
      }
      for (int first = j + 1; first < width; first += kTogether) {
        double held[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k)
          if (first + k < width) held[k] = part[(first + k) * share + i] - multiple * pivot_row[first + k];
#pragma unroll
        for (int k = 0; k < kTogether; ++k)
          if (first + k < width) part[(first + k) * share + i] = held[k];
      }
      if (j + 1 < width) mine = better(mine, {fabs(part[(j + 1) * share + i]), i});
    }
  }
  __syncthreads();
  if (block == 0 && thread < width)
    leaf.pivots[leaf.column + thread] = leaf.rows.global(chosen_row[thread], chosen_rank[thread]);
  for (int k = 0; k < width; ++k)
    for (int i = thread; i < rows; i += kLeafThreads) columns[k * leaf.ld + i] = part[k * share + i];
}

/// A row that the interchanges of a leaf move; from -1: none.
struct Move {
  long long from, to;
};
/// Returns move number `index`, 0 to 2 width - 1: first the top's rows, then those of the pivots that are not
/// among these.
__device__ inline Move move_of(const Leaf& leaf, const long long* pivots, int index) {
  const int width = leaf.width;
  long long from = index < width ? leaf.column + index : index < 2 * width ? pivots[index - width] : -1;
  if (index >= width && from >= 0) {
    if (from < leaf.column + width) from = -1;
    for (int before = 0; before < index - width && from >= 0; ++before)
      if (pivots[before] == from) from = -1;
  }
  long long to = from;
  for (int step = 0; step < width; ++step) {
    if (to == leaf.column + step)
      to = pivots[step];
    else if (to == pivots[step])
      to = leaf.column + step;
  }
  return {from, to};
}

/// Applies the leaf's interchanges to the other columns of the panel. A row that comes to the top goes to the
/// square of every rank; a row that goes below it goes to the body of one rank. A thread follows one row
/// through the columns of its block. The same blocks of all ranks have the same columns, so that each
/// receives in its order what it waits for.
///
/// A rank's places for moved rows are free: a peer writes those of the next leaf after its own part of that
/// leaf's columns, which needs candidates of all ranks, and this rank sends its candidates only after this
/// kernel has ended.
__global__ void __launch_bounds__(2 * kLeafColumns) exchange_rows(const Leaf leaf) {
  __shared__ long long pivots[kLeafColumns];
  const int thread = threadIdx.x, ranks = static_cast<int>(leaf.rows.ranks);
  const int mine = static_cast<int>(leaf.rows.mine);
  if (thread < leaf.width) pivots[thread] = leaf.pivots[leaf.column + thread] - leaf.first;
  __syncthreads();
  const Move move = move_of(leaf, pivots, thread);
  const bool moves = move.from >= 0, to_top = moves && move.to < leaf.column + leaf.width;
  const bool gives = moves && leaf.owner(move.from) == mine;
  const int receiver = moves ? leaf.owner(move.to) : -1;
  const bool takes = moves && (to_top || receiver == mine);
  const double* source = leaf.body + (gives ? leaf.place(move.from) : 0);
  double* target = to_top ? leaf.square + move.to : leaf.body + (takes ? leaf.place(move.to) : 0);
  const long long target_ld = to_top ? leaf.panel_width : leaf.ld;
  const int step = static_cast<int>(gridDim.x);
  for (int first = blockIdx.x; first < leaf.panel_width; first += kTogether * step) {
    double held[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int j = first + k * step;
      if (gives && j < leaf.panel_width && !leaf.has(j)) held[k] = source[j * leaf.ld];
    }
    for (int p = 0; p < ranks; ++p) {
      if (!gives || p == mine || (!to_top && p != receiver)) continue;
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int j = first + k * step;
        if (j < leaf.panel_width && !leaf.has(j))
          store_flagged(leaf.moved(p, j, thread), held[k], leaf.number);
      }
    }
    __syncthreads();  // all threads have read what is overwritten now
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int j = first + k * step;
      if (!takes || j >= leaf.panel_width || leaf.has(j)) continue;
      target[j * target_ld] = gives ? held[k] : await_flagged(leaf.moved(mine, j, thread), leaf.number);
    }
  }
}

}  // namespace hpl

#endif
