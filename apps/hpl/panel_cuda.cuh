// Kernels of the panel factorization on one GPU. A leaf of up to 64 columns lies in the shared memory of some
// blocks, each with its share of the rows, from the first column to the last: a pivot costs one message from
// each block to all others, through the L2 cache.
#ifndef HPL_PANEL_CUDA_CUH
#define HPL_PANEL_CUDA_CUH

#include "shared_cuda.cuh"

namespace hpl {

constexpr int kLeafColumns = 64;
#ifndef HPL_ON_CPU
constexpr int kLeafThreads = 512;
#endif
constexpr int kLeafMaxBlocks = 128;
constexpr int kLeafBytes = 212992;  // of a block's shared memory, for its rows

/// What the blocks tell one another of a column. There are two, used by turns: a block writes one again only
/// after it has read the next one of all blocks, and these were written after theirs had been read.
struct LeafMail {
  unsigned long long
      flag[kLeafMaxBlocks];  // the number of the column, counted over all launches; stored last
  double magnitude[kLeafMaxBlocks];
  long long row[kLeafMaxBlocks];                // of the candidate, from the first row of the body
  double values[kLeafMaxBlocks][kLeafColumns];  // the candidate's row of the leaf
  double top[kLeafColumns];                     // the row that the pivot's takes the place of
};

struct Leaf {
  double* body;  // of the panel
  long long ld, rows;
  int column, width;  // the leaf's columns of the panel; its top row has the same number as its first column
  int share;          // rows of a block
  long long* pivots;  // of the panel
  long long first;    // global row of the body's first
  long long* info;
  LeafMail* mail;             // two
  unsigned long long number;  // of the leaf's first column
};

#ifndef HPL_ON_CPU  // panel_cuda_test.cpp has these for the CPU
__device__ inline unsigned long long load_acquire(const unsigned long long* from) {
  unsigned long long value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void store_release(unsigned long long* to, unsigned long long value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
#endif

struct Best {
  double magnitude;
  int index;
};
__device__ inline Best better(Best a, Best b) {
  return b.magnitude > a.magnitude || (b.magnitude == a.magnitude && b.index < a.index) ? b : a;
}
__device__ inline Best best_of_warp(Best mine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const Best other{__shfl_xor_sync(0xffffffffu, mine.magnitude, distance),
                     __shfl_xor_sync(0xffffffffu, mine.index, distance)};
    mine = better(mine, other);
  }
  return mine;
}

__global__ void __launch_bounds__(kLeafThreads, 1) factorize_leaf(const Leaf leaf) {
  double* part = shared_memory();  // by columns
  __shared__ double pivot_row[kLeafColumns];
  __shared__ Best of_warps[kLeafThreads / 32];
  __shared__ int chosen_block, here;
  __shared__ long long chosen_row;
  const int thread = threadIdx.x, block = blockIdx.x, share = leaf.share, width = leaf.width;
  const long long begin = leaf.column + static_cast<long long>(block) * share;
  const int rows = static_cast<int>(min(static_cast<long long>(share), leaf.rows - begin));
  double* columns = leaf.body + leaf.column * leaf.ld + begin;
  for (int k = 0; k < width; ++k)
    for (int i = thread; i < rows; i += kLeafThreads) part[k * share + i] = columns[k * leaf.ld + i];
  Best mine{-1, 1 << 30};
  for (int i = thread; i < rows; i += kLeafThreads) mine = better(mine, {fabs(part[i]), i});

  for (int j = 0; j < width; ++j) {
    const unsigned long long number = leaf.number + j;
    LeafMail& mail = leaf.mail[number % 2];
    // This block's candidate.
    mine = best_of_warp(mine);
    if (thread % 32 == 0) of_warps[thread / 32] = mine;
    __syncthreads();
    if (thread < 32) {
      mine = best_of_warp(thread < kLeafThreads / 32 ? of_warps[thread] : Best{-1, 1 << 30});
      if (thread == 0) here = mine.index < rows ? mine.index : block == 0 ? j : rows - 1;  // all NaN: any
    }
    __syncthreads();
    if (thread < width) {
      mail.values[block][thread] = part[thread * share + here];
      if (block == 0) mail.top[thread] = part[thread * share + j];
    }
    if (thread == 0) {
      mail.magnitude[block] = mine.magnitude;
      mail.row[block] = begin + here;
    }
    __syncthreads();
    if (thread == 0) {
      __threadfence();
      store_release(&mail.flag[block], number);
    }
    // The best of all.
    if (thread < 32) {
      Best best{-2, 1 << 30};
      for (int b = thread; b < gridDim.x; b += 32) {
        while (load_acquire(&mail.flag[b]) != number) {
        }
        best = better(best, {__ldcg(&mail.magnitude[b]), b});
      }
      best = best_of_warp(best);
      if (thread == 0) {
        chosen_block = best.index < static_cast<int>(gridDim.x) ? best.index : 0;
        chosen_row = __ldcg(&mail.row[chosen_block]);
      }
    }
    __syncthreads();
    if (thread < width) {
      const double value = __ldcg(&mail.values[chosen_block][thread]);
      pivot_row[thread] = value;
      if (block == chosen_block) part[thread * share + here] = __ldcg(&mail.top[thread]);
      if (block == 0) part[thread * share + j] = value;  // after the line above, if the pivot was at the top
    }
    if (block == 0 && thread == 0) leaf.pivots[leaf.column + j] = leaf.first + chosen_row;
    __syncthreads();
    // The rows below lose the pivot's multiple.
    const double pivot = pivot_row[j];
    if (pivot == 0) {
      if (block == 0 && thread == 0 && *leaf.info == 0) *leaf.info = leaf.first + leaf.column + j + 1;
    }
    const double inverse = pivot == 0 ? 1 : 1 / pivot;
    mine = {-1, 1 << 30};
    for (int i = thread + (block == 0 ? j + 1 : 0); i < rows; i += kLeafThreads) {
      const double multiple = part[j * share + i] * inverse;
      part[j * share + i] = multiple;
      if (pivot == 0) {
        if (j + 1 < width) mine = better(mine, {fabs(part[(j + 1) * share + i]), i});
        continue;
      }
#pragma unroll 4
      for (int k = j + 1; k < width; ++k) part[k * share + i] -= multiple * pivot_row[k];
      if (j + 1 < width) mine = better(mine, {fabs(part[(j + 1) * share + i]), i});
    }
    __syncthreads();
  }
  for (int k = 0; k < width; ++k)
    for (int i = thread; i < rows; i += kLeafThreads) columns[k * leaf.ld + i] = part[k * share + i];
}

/// The leaf's interchanges in the other columns of the panel. A thread follows one row through all of them.
__global__ void exchange_rows(const Leaf leaf, int panel_width) {
  __shared__ long long pivots[kLeafColumns];
  const int thread = threadIdx.x, width = leaf.width;  // 2 kLeafColumns threads
  if (thread < width) pivots[thread] = leaf.pivots[leaf.column + thread] - leaf.first;
  __syncthreads();
  const int index = thread - width;
  const bool is_top = thread < width;
  long long source = is_top ? leaf.column + thread : index < width ? pivots[index] : -1;
  if (!is_top && source >= 0) {
    if (source < leaf.column + width) source = -1;
    for (int before = 0; before < index && source >= 0; ++before)
      if (pivots[before] == source) source = -1;
  }
  long long target = source;
  for (int step = 0; step < width; ++step) {
    if (target == leaf.column + step)
      target = pivots[step];
    else if (target == pivots[step])
      target = leaf.column + step;
  }
  for (int j = blockIdx.x; j < panel_width; j += gridDim.x) {
    if (j >= leaf.column && j < leaf.column + width) continue;
    double* column = leaf.body + j * leaf.ld;
    const double value = source >= 0 ? column[source] : 0;
    __syncthreads();
    if (source >= 0 && target != source) column[target] = value;
  }
}

}  // namespace hpl

#endif
