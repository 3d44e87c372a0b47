// A triangular solve of up to 64 rows: a warp takes 32 columns, each of its threads holds one in its
// registers.
#ifndef HPL_SOLVE_CUDA_CUH
#define HPL_SOLVE_CUDA_CUH

#include "shared_cuda.cuh"

namespace hpl {

constexpr int kSolveRows = 64, kSolveColumns = 32;
constexpr int kSolvePitch = kSolveRows + 1;  // of a column of b in shared memory: lanes meet in no bank
constexpr int kSolveBytes = 8 * (kSolveRows * kSolveRows + kSolveColumns * kSolvePitch);

/// b = inv(l) b; l is lower triangular with ones on its diagonal, m x m; b has n columns.
__global__ void __launch_bounds__(kSolveColumns)
    solve_rows(int m, long long n, const double* l, long long l_ld, double* b, long long b_ld) {
  double* lower = shared_memory();  // by columns
  double* part = lower + kSolveRows * kSolveRows;
  const int thread = threadIdx.x;
  const long long first = static_cast<long long>(blockIdx.x) * kSolveColumns;
  const int columns = static_cast<int>(min(static_cast<long long>(kSolveColumns), n - first));
  for (int k = 0; k < kSolveRows; ++k)
    for (int i = thread; i < kSolveRows; i += kSolveColumns)
      lower[k * kSolveRows + i] = i < m && k < i ? l[k * l_ld + i] : 0;
  for (int j = 0; j < columns; ++j)
    for (int i = thread; i < kSolveRows; i += kSolveColumns)
      part[j * kSolvePitch + i] = i < m ? b[(first + j) * b_ld + i] : 0;
  __syncthreads();
  double column[kSolveRows];
#pragma unroll
  for (int i = 0; i < kSolveRows; ++i) column[i] = part[thread * kSolvePitch + i];
#pragma unroll
  for (int k = 0; k < kSolveRows; ++k)
#pragma unroll
    for (int i = k + 1; i < kSolveRows; ++i) column[i] -= lower[k * kSolveRows + i] * column[k];
#pragma unroll
  for (int i = 0; i < kSolveRows; ++i) part[thread * kSolvePitch + i] = column[i];
  __syncthreads();
  for (int j = 0; j < columns; ++j)
    for (int i = thread; i < m; i += kSolveColumns) b[(first + j) * b_ld + i] = part[j * kSolvePitch + i];
}

}  // namespace hpl

#endif
