/* What the kernels that `peerway fc` makes of Fortran's loops call beside C's own functions: Fortran's
 * intrinsic functions and `**`. Each name ends with its type: i int, l long, f float, d double. A program
 * does not include this itself. */
#ifndef PEERWAY_XACC_FORTRAN_KERNELS_H
#define PEERWAY_XACC_FORTRAN_KERNELS_H

#include <complex.h>
#include <math.h>
#include <peerway/xacc/runtime.h>

/* The memory of a whole distributed array, whose copy on a GPU begins at a multiple of 16 bytes. */
static inline void* pwf_aligned(void* at) { return at; }
/* An element of it at a multiple of 16 bytes, which lets the compiler read two numbers at once. */
static inline void* pwf_at_16(const void* at) {
  if ((unsigned long)at % 16 != 0) __builtin_unreachable();
  return (void*)at;
}

/* The bits of a derived type as the Fortran compiler has it, and its bytes as a struct of C. */
static inline void pwf_check_size(long bits, unsigned long bytes, const char* type) {
  if (bits != 8 * (long)bytes)
    pwx_error(0, "%s has %ld bytes in Fortran and %lu in C; give it BIND(C) or SEQUENCE", type, bits / 8,
              bytes);
}

static inline int pwf_max_i(int a, int b) { return a > b ? a : b; }
static inline int pwf_min_i(int a, int b) { return a < b ? a : b; }
static inline long pwf_max_l(long a, long b) { return a > b ? a : b; }
static inline long pwf_min_l(long a, long b) { return a < b ? a : b; }
static inline float pwf_max_f(float a, float b) { return a > b || b != b ? a : b; }
static inline float pwf_min_f(float a, float b) { return a < b || b != b ? a : b; }
static inline double pwf_max_d(double a, double b) { return a > b || b != b ? a : b; }
static inline double pwf_min_d(double a, double b) { return a < b || b != b ? a : b; }
static inline int pwf_abs_i(int a) { return a < 0 ? -a : a; }
static inline long pwf_abs_l(long a) { return a < 0 ? -a : a; }
static inline int pwf_modulo_i(int a, int b) {
  const int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline long pwf_modulo_l(long a, long b) {
  const long rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline float pwf_modulo_f(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline double pwf_modulo_d(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline int pwf_sign_i(int a, int b) { return (a < 0) == (b < 0) ? a : -a; }
static inline long pwf_sign_l(long a, long b) { return (a < 0) == (b < 0) ? a : -a; }
static inline int pwf_dim_i(int a, int b) { return a > b ? a - b : 0; }
static inline long pwf_dim_l(long a, long b) { return a > b ? a - b : 0; }
static inline float pwf_dim_f(float a, float b) { return a > b ? a - b : 0; }
static inline double pwf_dim_d(double a, double b) { return a > b ? a - b : 0; }
static inline long pwf_shift(long a, int by, int bits) {
  const unsigned long kept = bits == 64 ? (unsigned long)a : (unsigned long)a & ((1UL << bits) - 1);
  return by >= bits || by <= -bits ? 0 : by >= 0 ? (long)(kept << by) : (long)(kept >> -by);
}
static inline double pwf_power_d(double a, long n) {
  double power = 1, factor = a;
  for (unsigned long rest = n < 0 ? 0UL - (unsigned long)n : (unsigned long)n; rest; rest >>= 1) {
    if (rest & 1) power *= factor;
    factor *= factor;
  }
  return n < 0 ? 1 / power : power;
}
static inline float pwf_power_f(float a, long n) {
  float power = 1, factor = a;
  for (unsigned long rest = n < 0 ? 0UL - (unsigned long)n : (unsigned long)n; rest; rest >>= 1) {
    if (rest & 1) power *= factor;
    factor *= factor;
  }
  return n < 0 ? 1 / power : power;
}
static inline long pwf_power_l(long a, long n) {
  if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 ? -1 : 1) : 0;
  long power = 1, factor = a;
  for (; n; n >>= 1) {
    if (n & 1) power *= factor;
    factor *= factor;
  }
  return power;
}

#endif
