#include "solve_cuda.cuh"
#include "solve_cuda.h"

namespace hpl {

void solve_lower(const CublasStream& blas, int64_t m, int64_t n, const double* l, int64_t l_ld, double* b,
                 int64_t b_ld) {
  if (m <= 0 || n <= 0) return;
  if (m <= kSolveRows) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(solve_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, kSolveBytes);
    must(allowed, "cudaFuncSetAttribute");
    const auto blocks = static_cast<unsigned>((n + kSolveColumns - 1) / kSolveColumns);
    solve_rows<<<blocks, kSolveColumns, kSolveBytes, blas.stream()>>>(int(m), n, l, l_ld, b, b_ld);
    return must(cudaGetLastError(), "launching the triangular solve");
  }
  const int64_t top = ((m + 1) / 2 + kSolveRows - 1) / kSolveRows * kSolveRows;
  solve_lower(blas, top, n, l, l_ld, b, b_ld);
  blas.gemm(m - top, n, top, l + top, l_ld, b, b_ld, b + top, b_ld);
  solve_lower(blas, m - top, n, l + top * l_ld + top, l_ld, b + top, b_ld);
}

}  // namespace hpl
