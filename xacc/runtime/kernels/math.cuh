// Conversions that C does and device code does not: arguments of mathematical functions that are not
// floating-point numbers, or of two different types; HIPRTC has those itself. Also keywords of C that neither
// compiler knows.
template <class T>
struct pwx_plain {
  using type = T;
};
template <class T>
struct pwx_plain<T&> {
  using type = T;
};
template <class T>
inline __device__ T pwx_literal(T value) {
  return value;
}
inline __device__ int acc_on_device(int type) {
#if defined(PWX_ON_AMD)
  constexpr int other_vendor = 5;  // acc_device_nvidia
#else
  constexpr int other_vendor = 8;  // acc_device_radeon
#endif
  return type != 0 && type != 2 && type != other_vendor;  // acc_device_none, _host
}
#if defined(__CUDACC_RTC__) || defined(PWX_ON_AMD)
#define __typeof__(...) pwx_plain<decltype(__VA_ARGS__)>::type
#define __typeof __typeof__
#define typeof __typeof__
#endif

#if defined(__CUDACC_RTC__)
template <class A, class B>
inline constexpr bool pwx_same = false;
template <class A>
inline constexpr bool pwx_same<A, A> = true;
template <class A>
inline constexpr bool pwx_integral =
    pwx_same<A, char> || pwx_same<A, signed char> || pwx_same<A, unsigned char> || pwx_same<A, short> ||
    pwx_same<A, unsigned short> || pwx_same<A, int> || pwx_same<A, unsigned> || pwx_same<A, long> ||
    pwx_same<A, unsigned long> || pwx_same<A, long long> || pwx_same<A, unsigned long long> ||
    pwx_same<A, bool>;
template <class A>
inline constexpr bool pwx_number = pwx_integral<A> || pwx_same<A, float> || pwx_same<A, double>;

#define PWX_OF_ONE(f)               \
  template <class A>                \
    requires(pwx_integral<A>)       \
  inline __device__ double f(A x) { \
    return f((double)x);            \
  }
#define PWX_OF_TWO(f)                                                                \
  template <class A, class B>                                                        \
    requires(pwx_number<A> && pwx_number<B> && (pwx_integral<A> || !pwx_same<A, B>)) \
  inline __device__ double f(A x, B y) {                                             \
    return f((double)x, (double)y);                                                  \
  }
PWX_OF_ONE(sqrt)
PWX_OF_ONE(cbrt)
PWX_OF_ONE(fabs)
PWX_OF_ONE(exp)
PWX_OF_ONE(exp2)
PWX_OF_ONE(log)
PWX_OF_ONE(log2)
PWX_OF_ONE(log10)
PWX_OF_ONE(log1p)
PWX_OF_ONE(expm1)
PWX_OF_ONE(sin)
PWX_OF_ONE(cos)
PWX_OF_ONE(tan)
PWX_OF_ONE(asin)
PWX_OF_ONE(acos)
PWX_OF_ONE(atan)
PWX_OF_ONE(sinh)
PWX_OF_ONE(cosh)
PWX_OF_ONE(tanh)
PWX_OF_ONE(floor)
PWX_OF_ONE(ceil)
PWX_OF_ONE(round)
PWX_OF_ONE(trunc)
PWX_OF_ONE(rint)
PWX_OF_ONE(erf)
PWX_OF_TWO(fmax)
PWX_OF_TWO(fmin)
PWX_OF_TWO(fmod)
PWX_OF_TWO(atan2)
PWX_OF_TWO(hypot)
PWX_OF_TWO(pow)
PWX_OF_TWO(fdim)
PWX_OF_TWO(copysign)
#endif
