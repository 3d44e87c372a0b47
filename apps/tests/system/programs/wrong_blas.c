/* A BLAS whose products are a little wrong, in front of the one that WRONG_BLAS_OF names: what hpl's residual
 * has to see. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void* real(const char* plain, const char* prefixed) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("WRONG_BLAS_OF"), RTLD_NOW);
  void* address = dlsym(library, plain);
  return address != NULL ? address : dlsym(library, prefixed);
}

void dgemm_(const char* ta, const char* tb, const int32_t* m, const int32_t* n, const int32_t* k,
            const double* alpha, const double* a, const int32_t* lda, const double* b, const int32_t* ldb,
            const double* beta, double* c, const int32_t* ldc, size_t la, size_t lb) {
  void (*gemm)(const char*, const char*, const int32_t*, const int32_t*, const int32_t*, const double*,
               const double*, const int32_t*, const double*, const int32_t*, const double*, double*,
               const int32_t*, size_t, size_t) = real("dgemm_", "scipy_dgemm_");
  gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
  c[0] += 1e-7;
}

void dtrsm_(const char* side, const char* part, const char* op, const char* diagonal, const int32_t* m,
            const int32_t* n, const double* alpha, const double* a, const int32_t* lda, double* b,
            const int32_t* ldb, size_t l1, size_t l2, size_t l3, size_t l4) {
  void (*trsm)(const char*, const char*, const char*, const char*, const int32_t*, const int32_t*,
               const double*, const double*, const int32_t*, double*, const int32_t*, size_t, size_t, size_t,
               size_t) = real("dtrsm_", "scipy_dtrsm_");
  trsm(side, part, op, diagonal, m, n, alpha, a, lda, b, ldb, l1, l2, l3, l4);
}

void dgemv_(const char* op, const int32_t* m, const int32_t* n, const double* alpha, const double* a,
            const int32_t* lda, const double* x, const int32_t* incx, const double* beta, double* y,
            const int32_t* incy, size_t l) {
  void (*gemv)(const char*, const int32_t*, const int32_t*, const double*, const double*, const int32_t*,
               const double*, const int32_t*, const double*, double*, const int32_t*, size_t) =
      real("dgemv_", "scipy_dgemv_");
  gemv(op, m, n, alpha, a, lda, x, incx, beta, y, incy, l);
}
