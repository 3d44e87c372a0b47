// A double of a GPU's BLAS on the CPU, by plain loops: of hipBLAS, or with -DROCBLAS of rocBLAS, with
// -DCUBLAS of cuBLAS. It takes that library's numbers for operations, sides and triangles, and no others.
#include <cstddef>

#define API extern "C" __attribute__((visibility("default"))) int

#if defined(CUBLAS)
#define NAME(cublas, hipblas, rocblas) cublas
enum { kAsStored = 0, kLeft = 0, kLower = 0, kUpper = 1, kOnes = 1, kAnyDiagonal = 0 };
#else
#if defined(ROCBLAS)
#define NAME(cublas, hipblas, rocblas) rocblas
#else
#define NAME(cublas, hipblas, rocblas) hipblas
#endif
enum { kAsStored = 111, kLeft = 141, kLower = 122, kUpper = 121, kOnes = 132, kAnyDiagonal = 131 };
#endif
enum { kDone = 0, kInvalid = 7 };

API NAME(cublasCreate_v2, hipblasCreate, rocblas_create_handle)(void** handle) {
  static int only;
  *handle = &only;
  return kDone;
}
API NAME(cublasSetStream_v2, hipblasSetStream, rocblas_set_stream)(void* handle, void*) {
  return handle != nullptr ? kDone : kInvalid;
}
API NAME(cublasDgemm_v2, hipblasDgemm,
         rocblas_dgemm)(void*, int op_a, int op_b, int m, int n, int k, const double* alpha, const double* a,
                        int a_ld, const double* b, int b_ld, const double* beta, double* c, int c_ld) {
  if (op_a != kAsStored || op_b != kAsStored) return kInvalid;
  for (ptrdiff_t j = 0; j < n; ++j) {
    for (ptrdiff_t i = 0; i < m; ++i) c[j * c_ld + i] = *beta == 0 ? 0 : c[j * c_ld + i] * *beta;
    for (ptrdiff_t p = 0; p < k; ++p)
      for (ptrdiff_t i = 0; i < m; ++i) c[j * c_ld + i] += *alpha * a[p * a_ld + i] * b[j * b_ld + p];
  }
  return kDone;
}
API NAME(cublasDtrsm_v2, hipblasDtrsm, rocblas_dtrsm)(void*, int side, int part, int op, int diagonal, int m,
                                                      int n, const double* alpha, const double* a, int a_ld,
                                                      double* b, int b_ld) {
  if (side != kLeft || part != kLower || op != kAsStored || diagonal != kOnes || *alpha != 1) return kInvalid;
  for (ptrdiff_t j = 0; j < n; ++j)
    for (ptrdiff_t p = 0; p < m; ++p)
      for (ptrdiff_t i = p + 1; i < m; ++i) b[j * b_ld + i] -= a[p * a_ld + i] * b[j * b_ld + p];
  return kDone;
}
API NAME(cublasDgemv_v2, hipblasDgemv, rocblas_dgemv)(void*, int op, int m, int n, const double* alpha,
                                                      const double* a, int a_ld, const double* x, int x_step,
                                                      const double* beta, double* y, int y_step) {
  if (op != kAsStored || x_step != 1 || y_step != 1 || *beta != 1) return kInvalid;
  for (ptrdiff_t j = 0; j < n; ++j)
    for (ptrdiff_t i = 0; i < m; ++i) y[i] += *alpha * a[j * a_ld + i] * x[j];
  return kDone;
}
API NAME(cublasDtrsv_v2, hipblasDtrsv, rocblas_dtrsv)(void*, int part, int op, int diagonal, int n,
                                                      const double* a, int a_ld, double* x, int x_step) {
  if (part != kUpper || op != kAsStored || diagonal != kAnyDiagonal || x_step != 1) return kInvalid;
  for (ptrdiff_t j = n - 1; j >= 0; --j) {
    x[j] /= a[j * a_ld + j];
    for (ptrdiff_t i = 0; i < j; ++i) x[i] -= a[j * a_ld + i] * x[j];
  }
  return kDone;
}
