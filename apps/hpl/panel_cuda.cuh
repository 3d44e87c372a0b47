// Kernels of the panel factorization on one GPU. A leaf of up to 32 columns lies in the shared memory of some
// blocks, each with its share of the rows, from the first column to the last: a pivot costs one message from
// each block to all others, through the L2 cache.
#ifndef HPL_PANEL_CUDA_CUH
#define HPL_PANEL_CUDA_CUH

namespace hpl {

constexpr int kLeafColumns = 32;
#ifndef HPL_ON_CPU
constexpr int kLeafThreads = 512;
#endif
constexpr int kLeafMaxBlocks = 128;
constexpr int kLeafBytes = 212992;  // of a block's shared memory, for its rows

/// A value of a column, whose number (counted over all launches) says that it is there: one store, one load.
struct alignas(16) Told {
  double value;
  unsigned long long number;
};

/// What the blocks tell one another of a column. There are two, used by turns: a block writes one again only
/// after it has read the next one of all blocks, and these were written after theirs had been read.
struct LeafMail {
  Told magnitude[kLeafMaxBlocks];             // of the candidates
  Told row[kLeafMaxBlocks];                   // theirs, from the first row of the body
  Told values[kLeafMaxBlocks][kLeafColumns];  // their rows of the leaf
  Told top[kLeafColumns];                     // the row that the pivot's takes the place of
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
__device__ inline void tell(Told* to, double value, unsigned long long number) {
  asm volatile(
      "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(to),
      "l"(__double_as_longlong(value)), "l"(number)
      : "memory");
}
__device__ inline Told look(const Told* from) {
  long long value;
  unsigned long long number;
  asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
               : "=l"(value), "=l"(number)
               : "l"(from)
               : "memory");
  return {__longlong_as_double(value), number};
}
/// What the launch gives each block.
__device__ inline double* shared_memory() {
  extern __shared__ double memory[];
  return memory;
}
#endif

__device__ inline double hear(const Told* from, unsigned long long number) {
  Told told = look(from);
  while (told.number != number) told = look(from);
  return told.value;
}

struct Best {
  double magnitude;
  int index;
};
__device__ inline Best better(Best a, Best b) {
  return b.magnitude > a.magnitude || (b.magnitude == a.magnitude && b.index < a.index) ? b : a;
}
/// By the halves of the magnitude, which as integers have the same order; that of none is -1.
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

/// Loads are under way together where nothing is stored in between.
constexpr int kTogether = 8;

/// The block whose candidate is the best; to be called by a warp. All loads are under way at once.
__device__ inline int best_block(const LeafMail& mail, unsigned long long number) {
  constexpr int kEach = kLeafMaxBlocks / 32;
  const int lane = threadIdx.x % 32, blocks = static_cast<int>(gridDim.x);
  Told told[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (lane + 32 * i < blocks) told[i] = look(&mail.magnitude[lane + 32 * i]);
  Best best{-1, 1 << 30};
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int block = lane + 32 * i;
    if (block >= blocks) continue;
    while (told[i].number != number) told[i] = look(&mail.magnitude[block]);
    best = better(best, {told[i].value, block});
  }
  best = best_of_warp(best);
  return best.index < blocks ? best.index : 0;
}

__global__ void __launch_bounds__(kLeafThreads, 1) factorize_leaf(const Leaf leaf) {
  double* part = shared_memory();  // by columns
  __shared__ double pivot_row[kLeafColumns];
  __shared__ Best of_warps[kLeafThreads / 32];
  const int thread = threadIdx.x, block = blockIdx.x, share = leaf.share, width = leaf.width;
  const long long begin = leaf.column + static_cast<long long>(block) * share;
  const int rows = static_cast<int>(min(static_cast<long long>(share), leaf.rows - begin));
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
    LeafMail& mail = leaf.mail[number % 2];
    mine = best_of_warp(mine);
    if (thread % 32 == 0) of_warps[thread / 32] = mine;
    __syncthreads();
    if (thread < 32) {  // one warp, so that only the messages take time
      mine = best_of_warp(thread < kLeafThreads / 32 ? of_warps[thread] : Best{-1, 1 << 30});
      const int here = mine.index < rows ? mine.index : block == 0 ? j : rows - 1;  // all NaN: any
      if (thread == 0) tell(&mail.magnitude[block], mine.magnitude, number);
      if (thread < width) tell(&mail.values[block][thread], part[thread * share + here], number);
      if (block == 0 && thread < width) tell(&mail.top[thread], part[thread * share + j], number);
      if (thread == 0) tell(&mail.row[block], static_cast<double>(begin + here), number);
      const int chosen = best_block(mail, number);
      if (thread < width) {
        const double value = hear(&mail.values[chosen][thread], number);
        pivot_row[thread] = value;
        if (block == chosen) part[thread * share + here] = hear(&mail.top[thread], number);
        if (block == 0)
          part[thread * share + j] = value;  // after the line above, if the pivot was at the top
      }
      if (block == 0 && thread == 0)
        leaf.pivots[leaf.column + j] = leaf.first + static_cast<long long>(hear(&mail.row[chosen], number));
    }
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
