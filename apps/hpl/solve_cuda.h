// Triangular solves with many columns by halves: 64 rows by a kernel, the rest by DGEMM. On an H200 cuBLAS's
// DTRSM of 1,024 rows reaches some 4 TFLOP/s, DGEMM 50.
#ifndef HPL_SOLVE_CUDA_H
#define HPL_SOLVE_CUDA_H

#include <cuda_runtime.h>

#include "cublas.h"

namespace hpl {

/// b = inv(l) b; l is lower triangular with ones on its diagonal, b has m rows and n columns.
void solve_lower(const CublasStream& blas, int64_t m, int64_t n, const double* l, int64_t l_ld, double* b,
                 int64_t b_ld);

}  // namespace hpl

#endif
