// The messages between the GPUs of a process column while they factorize a leaf of a panel: their kernels
// store directly into each other's memory.
//
// A wait for a message has no limit. It ends unless a rank is lost; then the launcher (peerway run, or
// mpirun) ends the other processes of the job, and with them their kernels.
#ifndef HPL_LEAF_CUDA_CUH
#define HPL_LEAF_CUDA_CUH

#include "dealt.cuh"

namespace hpl {

constexpr int kLeafColumns = 32;
constexpr int kLeafMaxBlocks = 256;  // of all ranks
constexpr int kLeafMaxRanks = 16;

/// A value, with a number that shows that it has arrived: the number of its column, counted over all leaves.
/// It takes one store and one load.
struct alignas(16) FlaggedValue {
  double value;
  unsigned long long number;
};

/// The messages for a column from the blocks of all ranks to one rank. There are two, used in turn: a block
/// writes one again only after it has read the next one from all blocks, which wrote that after they had read
/// the earlier one. This also holds from one leaf to the next, because the numbers continue.
struct LeafMail {
  FlaggedValue magnitude[kLeafMaxBlocks];  // of the candidates; those of rank 0 come first
  FlaggedValue row[kLeafMaxBlocks];        // the candidates' rows, in the local matrix of their rank
  FlaggedValue values[kLeafMaxBlocks][kLeafColumns];  // the candidates' rows of the leaf
  FlaggedValue top[kLeafColumns];                     // the row that the pivot's row replaces
};

/// A rank's memory for messages from its column. After it come kMovedBytes for each column of the panel, with
/// a place for each row that the interchanges of a leaf move.
struct LeafRoom {
  LeafMail mail[2];
};
constexpr unsigned long long kMovedBytes = sizeof(FlaggedValue) * 2 * kLeafColumns;

/// A leaf for one rank of the column. Rows of the panel are numbered from the first row of the top.
struct Leaf {
  LeafRoom* room[kLeafMaxRanks];  // for each rank, its address for kernels of this rank
  Dealt rows;                     // of the matrix; the ranks are those of the column
  double* square;                 // of the panel, by columns: the factor of the top's rows
  double* body;                   // the local rows; rows of the top are stale once pivots have replaced them
  long long ld, count;            // of the body
  long long before;               // the local row in the matrix of the body's first row
  long long first;                // the global row of the first row of the top
  long long* pivots;              // of the panel
  long long* info;
  int panel_width, top;       // columns of the panel; the rank that owns the top's rows
  int column, width;          // the leaf's columns of the panel; its first top row has the same number
  int share;                  // rows per block
  unsigned long long number;  // number of the leaf's first column

  [[nodiscard]] __device__ FlaggedValue* moved(int rank, int column_of_panel, int row) const {
    return reinterpret_cast<FlaggedValue*>(room[rank] + 1) + column_of_panel * 2LL * kLeafColumns + row;
  }
  [[nodiscard]] __device__ bool is_top() const { return rows.mine == top; }
  /// Return the rank that owns a row of the panel, and its index in the body there.
  [[nodiscard]] __device__ int owner(long long row) const { return rows.owner(first + row); }
  [[nodiscard]] __device__ long long place(long long row) const { return rows.local(first + row) - before; }
  [[nodiscard]] __device__ bool has(int column_of_panel) const {
    return column_of_panel >= column && column_of_panel < column + width;
  }
};

#ifndef HPL_ON_CPU  // panel_cuda_test.cpp has these for the CPU, and those of panel_cuda.cuh
__device__ inline void store_flagged(FlaggedValue* to, double value, unsigned long long number) {
  asm volatile(
      "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.sys.global.b128 [%0], both; }" ::"l"(to),
      "l"(__double_as_longlong(value)), "l"(number)
      : "memory");
}
__device__ inline FlaggedValue look(const FlaggedValue* from) {
  long long value;
  unsigned long long number;
  asm volatile("{ .reg .b128 both; ld.relaxed.sys.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
               : "=l"(value), "=l"(number)
               : "l"(from)
               : "memory");
  return {__longlong_as_double(value), number};
}
#endif

__device__ inline double await_flagged(const FlaggedValue* from, unsigned long long number) {
  FlaggedValue seen = look(from);
  while (seen.number != number) seen = look(from);
  return seen.value;
}

}  // namespace hpl

#endif
