"""Declares for libclang the functions that NVRTC knows without a declaration."""

from __future__ import annotations

_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2 "
    "expm1 fabs floor j0 j1 lgamma log log10 log1p log2 logb nearbyint normcdf normcdfinv "
    "rcbrt rint round rsqrt "
    "sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1"
)
_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder rhypot"
_TO_LONG = "llrint llround lrint lround"
_TESTS = "isfinite isinf isnan signbit"

_HEAD = """\
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __constant__
#define __shared__ static
#define __launch_bounds__(...)
#define __CUDACC_RTC__
#define __typeof __typeof__
#define typeof __typeof__
#define __restrict__ __restrict
#define __builtin_assume(x) ((void)0)
typedef decltype(sizeof(0)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef unsigned uint; typedef unsigned short ushort; typedef unsigned char uchar;
typedef unsigned long ulong;
typedef long clock_t;
struct pwx_index { unsigned x, y, z; };
extern const pwx_index threadIdx, blockIdx, blockDim, gridDim;
extern const int warpSize;
void __syncthreads(); void __syncwarp(unsigned = ~0u); void __threadfence(); void __threadfence_system();
void __threadfence_block(); clock_t clock(); long long clock64(); void __trap();
extern "C" {
int printf(const char *, ...);
void *malloc(size_t); void free(void *);
void *memcpy(void *, const void *, size_t); void *memset(void *, int, size_t);
}
void __assertfail(const char *, const char *, unsigned, const char *, size_t);
#define assert(condition) ((void)(condition))
template <class T> T __ldg(const T *);
template <class T> T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> T __shfl_sync(unsigned, T, int, int = 32);
template <class T, class U> T atomicAdd(T *, U);
template <class T, class U> T atomicMax(T *, U);
template <class T, class U> T atomicMin(T *, U);
template <class T, class U, class V> T atomicCAS(T *, U, V);
float __int_as_float(int); int __float_as_int(float);
double __longlong_as_double(long long); long long __double_as_longlong(double);
int abs(int); long abs(long); long long abs(long long); double abs(double); float abs(float);
long labs(long); long long llabs(long long);
template <class T> T max(T, T); template <class T> T min(T, T);
double max(double, float); double max(float, double); double min(double, float); double min(float, double);
long max(long, int); long max(int, long); long min(long, int); long min(int, long);
unsigned max(unsigned, int); unsigned max(int, unsigned);
unsigned min(unsigned, int); unsigned min(int, unsigned);
int ilogb(double); int ilogb(float); double nan(const char *); float nanf(const char *);
double ldexp(double, int); float ldexp(float, int); float ldexpf(float, int);
double scalbn(double, int); float scalbn(float, int); double scalbln(double, long);
double frexp(double, int *); float frexp(float, int *); float frexpf(float, int *);
double modf(double, double *); float modf(float, float *); float modff(float, float *);
double fma(double, double, double); float fma(float, float, float); float fmaf(float, float, float);
double pow(double, int); float pow(float, int); double jn(int, double); double yn(int, double);
void sincos(double, double *, double *); void sincosf(float, float *, float *);
"""


def _functions() -> list[str]:
    lines = []
    for name in _ONE.split():
        lines.append(f"double {name}(double); float {name}(float); float {name}f(float);")
    for name in _TWO.split():
        arguments = [f"({kind}, {kind});" for kind in ("double", "float")]
        lines.append(f"double {name}{arguments[0]} float {name}{arguments[1]} float {name}f{arguments[1]}")
    for name in _TO_LONG.split():
        kind = "long long" if name.startswith("ll") else "long"
        lines.append(f"{kind} {name}(double); {kind} {name}(float); {kind} {name}f(float);")
    lines += [f"bool {name}(double); bool {name}(float);" for name in _TESTS.split()]
    return lines


DECLARED = _HEAD + "\n".join(_functions()) + "\n"
