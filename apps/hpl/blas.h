// A BLAS for the CPU, found at run time.
#ifndef HPL_BLAS_H
#define HPL_BLAS_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace hpl {

/// The routines with their Fortran names. The sizes at the end are the lengths of the letters, which some
/// compilers pass.
struct Blas {
  using Int = int32_t;
  using Gemm = void(const char*, const char*, const Int*, const Int*, const Int*, const double*,
                    const double*, const Int*, const double*, const Int*, const double*, double*, const Int*,
                    size_t, size_t);
  using Trsm = void(const char*, const char*, const char*, const char*, const Int*, const Int*, const double*,
                    const double*, const Int*, double*, const Int*, size_t, size_t, size_t, size_t);
  using Gemv = void(const char*, const Int*, const Int*, const double*, const double*, const Int*,
                    const double*, const Int*, const double*, double*, const Int*, size_t);

  Gemm* gemm;
  Trsm* trsm;
  Gemv* gemv;
  std::string file;

  void minus_product(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b,
                     int64_t b_ld, double* c, int64_t c_ld) const;
  /// Solves with a triangle; `part` is 'L' (with ones on the diagonal) or 'U'.
  void solve(char part, int64_t m, int64_t n, const double* t, int64_t t_ld, double* b, int64_t b_ld) const;
  void minus_vector(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) const;
};

/// Loads a BLAS once for the process: `file`, or the first of those that systems have. Throws with what was
/// tried.
const Blas& load_blas(const std::string& file, int threads);
/// Returns the BLAS that is loaded; loads the first that is found if none is.
const Blas& blas();

}  // namespace hpl

#endif
