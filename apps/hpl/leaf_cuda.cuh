// What the GPUs of a process column tell one another while they factorize a leaf of a panel: their kernels
// store straight into each other's memory.
//
// A wait for it has no limit. It ends unless a rank is lost, and then the launcher (peerway run, or mpirun)
// ends the other processes of the job, and with them their kernels.
#ifndef HPL_LEAF_CUDA_CUH
#define HPL_LEAF_CUDA_CUH

#include "dealt.cuh"

namespace hpl {

constexpr int kLeafColumns = 32;
constexpr int kLeafMaxBlocks = 256;  // of all ranks
constexpr int kLeafMaxRanks = 16;

/// A value of a column, whose number (counted over all leaves) says that it is there: one store, one load.
struct alignas(16) StampedValue {
  double value;
  unsigned long long number;
};

/// What the blocks of all ranks tell one rank of a column. It has two, used by turns: a block writes one
/// again only after it has read the next one of all blocks, and these were written after theirs had been
/// read. That holds from one leaf to the next, too, since the numbers go on.
struct LeafMail {
  StampedValue magnitude[kLeafMaxBlocks];             // of the candidates; those of rank 0 first
  StampedValue row[kLeafMaxBlocks];                   // theirs, in the local matrix of their rank
  StampedValue values[kLeafMaxBlocks][kLeafColumns];  // their rows of the leaf
  StampedValue top[kLeafColumns];                     // the row that the pivot's takes the place of
};

/// What a rank has for messages from its column; behind it are kMovedBytes for each column of the panel,
/// with a place for each row that the interchanges of a leaf move.
struct LeafRoom {
  LeafMail mail[2];
};
constexpr unsigned long long kMovedBytes = sizeof(StampedValue) * 2 * kLeafColumns;

/// A leaf as one rank of the column has it. Rows of the panel are numbered from the top's first.
struct Leaf {
  LeafRoom* room[kLeafMaxRanks];  // of each rank, as kernels of this one reach it
  Dealt rows;                     // of the matrix; the ranks are those of the column
  double* square;                 // of the panel, by columns: the factor of the top's rows
  double* body;                   // the local rows; those of the top are stale once pivots have come there
  long long ld, count;            // of the body
  long long before;               // the body's first row in the local matrix
  long long first;                // the global row of the top's first
  long long* pivots;              // of the panel
  long long* info;
  int panel_width, top;       // columns of the panel; the rank that has the top's rows
  int column, width;          // the leaf's columns of the panel; its first top row has the same number
  int share;                  // rows of a block
  unsigned long long number;  // of the leaf's first column

  [[nodiscard]] __device__ StampedValue* moved(int rank, int column_of_panel, int row) const {
    return reinterpret_cast<StampedValue*>(room[rank] + 1) + column_of_panel * 2LL * kLeafColumns + row;
  }
  [[nodiscard]] __device__ bool is_top() const { return rows.mine == top; }
  /// Of a row of the panel, its rank and its place in the body there.
  [[nodiscard]] __device__ int owner(long long row) const { return rows.owner(first + row); }
  [[nodiscard]] __device__ long long place(long long row) const { return rows.local(first + row) - before; }
  [[nodiscard]] __device__ bool has(int column_of_panel) const {
    return column_of_panel >= column && column_of_panel < column + width;
  }
};

#ifndef HPL_ON_CPU  // panel_cuda_test.cpp has these for the CPU, and those of panel_cuda.cuh
__device__ inline void tell(StampedValue* to, double value, unsigned long long number) {
  asm volatile(
      "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.sys.global.b128 [%0], both; }" ::"l"(to),
      "l"(__double_as_longlong(value)), "l"(number)
      : "memory");
}
__device__ inline StampedValue look(const StampedValue* from) {
  long long value;
  unsigned long long number;
  asm volatile("{ .reg .b128 both; ld.relaxed.sys.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
               : "=l"(value), "=l"(number)
               : "l"(from)
               : "memory");
  return {__longlong_as_double(value), number};
}
#endif

__device__ inline double hear(const StampedValue* from, unsigned long long number) {
  StampedValue stamped = look(from);
  while (stamped.number != number) stamped = look(from);
  return stamped.value;
}

}  // namespace hpl

#endif
