// Kernels that move rows, make the matrix and add up magnitudes. A block works down whole columns.
#ifndef HPL_ROWS_GPU_CUH
#define HPL_ROWS_GPU_CUH

#include "dealt.cuh"
#include "random.h"

namespace hpl {

#ifndef HPL_ON_CPU
constexpr int kRowThreads = 512;
constexpr int kThreads = 256;  // of the other kernels
#endif
constexpr int kRowsEach = 16;  // rows per thread: at most 8,192 rows are moved at once

/// Reads all rows of a column before it writes any: the first `width` rows of `from` go to `top`, the others
/// to the rows `to` of the column.
__global__ void __launch_bounds__(kRowThreads)
    move_rows(double* a, long long ld, const long long* from, const long long* to, int width, int count,
              double* top, long long n) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x) {
    double* column = a + j * ld;
    double held[kRowsEach];
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const int i = threadIdx.x + r * kRowThreads;
      if (i < count) held[r] = column[from[i]];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const int i = threadIdx.x + r * kRowThreads;
      if (i < width)
        top[j * width + i] = held[r];
      else if (i < count)
        column[to[i - width]] = held[r];
    }
  }
}

__global__ void gather_rows(double* out, long long out_ld, const double* a, long long ld,
                            const long long* rows, int count, long long n) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x)
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[j * out_ld + i] = a[j * ld + rows[i]];
}

__global__ void scatter_rows(double* a, long long ld, const long long* rows, const double* in,
                             long long in_ld, int count, long long n) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x)
    for (int i = threadIdx.x; i < count; i += blockDim.x) a[j * ld + rows[i]] = in[j * in_ld + i];
}

/// Used because the driver's two-dimensional copies take ten times as long beside other work.
__global__ void copy_columns(double* to, long long to_ld, const double* from, long long from_ld,
                             long long rows, long long n) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x)
    for (long long i = threadIdx.x; i < rows; i += blockDim.x) to[j * to_ld + i] = from[j * from_ld + i];
}

__global__ void set_identity(double* a, long long n) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x)
    for (long long i = threadIdx.x; i < n; i += blockDim.x) a[j * n + i] = i == j;
}

/// The generator's steps by powers of two.
struct Powers {
  Affine of[64];
};

__global__ void generate(double* a, long long ld, long long m, long long n, Dealt rows, Dealt columns,
                         long long order, const Powers powers, bool constant) {
  for (long long j = blockIdx.x; j < n; j += gridDim.x)
    for (long long i = threadIdx.x; i < m; i += blockDim.x) {
      unsigned long long at = constant ? 0 : columns.global(j) * order + rows.global(i);
      uint64_t x = kSeed;
      for (int bit = 0; at != 0; ++bit, at >>= 1)
        if (at & 1) x = powers.of[bit](x);
      a[j * ld + i] = as_element(x);
    }
}

__global__ void add_magnitudes(long long m, long long n, const double* a, long long ld, double* sums) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m) return;
  double sum = 0;
  for (long long j = blockIdx.y; j < n; j += gridDim.y) sum += fabs(a[j * ld + i]);
  atomicAdd(&sums[i], sum);
}

}  // namespace hpl

#endif
