// The random matrix of HPL, by its definition: X(0) = 100, X(n+1) = a X(n) + c modulo 2^64, and the element
// in row i and column j of a matrix with N rows is X(j N + i) / (2^64 - 1) - 1/2. n steps of the generator
// are one affine map, found by repeated squaring, so every rank and every thread starts where its elements
// begin: the matrix does not depend on how it is distributed.
#ifndef HPL_RANDOM_H
#define HPL_RANDOM_H

#include <cstdint>

#if defined(__CUDACC__) || (defined(__HIP__) && !defined(HPL_ON_CPU))
#define HPL_BOTH __host__ __device__
#else
#define HPL_BOTH
#endif

namespace hpl {

/// x -> a x + c modulo 2^64.
struct Affine {
  uint64_t a, c;
  HPL_BOTH constexpr uint64_t operator()(uint64_t x) const { return a * x + c; }
};

inline constexpr Affine kStep{6364136223846793005u, 1u};
inline constexpr uint64_t kSeed = 100;

/// First `f`, then `g`.
HPL_BOTH constexpr Affine then(Affine f, Affine g) { return {g.a * f.a, g.a * f.c + g.c}; }

/// `n` steps at once.
HPL_BOTH constexpr Affine steps(uint64_t n) {
  Affine all{1, 0};
  for (Affine square = kStep; n != 0; n >>= 1, square = then(square, square))
    if (n & 1) all = then(all, square);
  return all;
}

/// Returns a value from -1/2 to 1/2.
HPL_BOTH constexpr double as_element(uint64_t x) {
  return static_cast<double>(x) / 18446744073709551615.0 - 0.5;
}

}  // namespace hpl

#endif
