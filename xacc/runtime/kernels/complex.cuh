// C's complex numbers as a C++ class: real part, then imaginary part.
template <class T>
constexpr bool pwx_is_real = false;
template <>
constexpr bool pwx_is_real<float> = true;
template <>
constexpr bool pwx_is_real<double> = true;
template <>
constexpr bool pwx_is_real<int> = true;
template <>
constexpr bool pwx_is_real<unsigned> = true;
template <>
constexpr bool pwx_is_real<long> = true;
template <>
constexpr bool pwx_is_real<unsigned long> = true;
template <class T>
struct pwx_complex {
  T re, im;
  pwx_complex() = default;
  __device__ pwx_complex(T real, T imaginary) : re(real), im(imaginary) {}
  template <class U>
    requires pwx_is_real<U>
  __device__ pwx_complex(U real) : re(T(real)), im(0) {}
  template <class U>
  __device__ pwx_complex(const pwx_complex<U>& other) : re(T(other.re)), im(T(other.im)) {}
  __device__ explicit operator T() const { return re; }
  template <class U>
  __device__ pwx_complex& operator+=(const U& other) {
    return *this = *this + other;
  }
  template <class U>
  __device__ pwx_complex& operator-=(const U& other) {
    return *this = *this - other;
  }
  template <class U>
  __device__ pwx_complex& operator*=(const U& other) {
    return *this = *this * other;
  }
  template <class U>
  __device__ pwx_complex& operator/=(const U& other) {
    return *this = *this / other;
  }
};
template <class T, class U>
using pwx_wider = pwx_complex<decltype(T() + U())>;
template <class T, class U>
__device__ pwx_wider<T, U> operator+(pwx_complex<T> a, pwx_complex<U> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T, class U>
__device__ pwx_wider<T, U> operator-(pwx_complex<T> a, pwx_complex<U> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T, class U>
__device__ pwx_wider<T, U> operator*(pwx_complex<T> a, pwx_complex<U> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T, class U>
__device__ pwx_wider<T, U> operator/(pwx_complex<T> a, pwx_complex<U> b) {
  const auto size = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size};
}
template <class T, class U>
__device__ bool operator==(pwx_complex<T> a, pwx_complex<U> b) {
  return a.re == b.re && a.im == b.im;
}
#define PWX_MIXED(op)                                  \
  template <class T, class U>                          \
    requires pwx_is_real<U>                            \
  __device__ auto operator op(pwx_complex<T> a, U b) { \
    return a op pwx_complex<decltype(T() + U())>(b);   \
  }                                                    \
  template <class T, class U>                          \
    requires pwx_is_real<U>                            \
  __device__ auto operator op(U a, pwx_complex<T> b) { \
    return pwx_complex<decltype(T() + U())>(a) op b;   \
  }
// clang-format off
PWX_MIXED(+)
PWX_MIXED(-)
PWX_MIXED(*)
PWX_MIXED(/)
PWX_MIXED(==)
// clang-format on
#undef PWX_MIXED
template <class T>
__device__ pwx_complex<T> operator-(pwx_complex<T> a) {
  return {-a.re, -a.im};
}
#define _Complex_I pwx_complex<float>(0, 1)
inline __device__ double creal(pwx_complex<double> a) { return a.re; }
inline __device__ double cimag(pwx_complex<double> a) { return a.im; }
inline __device__ pwx_complex<double> conj(pwx_complex<double> a) { return {a.re, -a.im}; }
inline __device__ double cabs(pwx_complex<double> a) { return hypot(a.re, a.im); }
inline __device__ double carg(pwx_complex<double> a) { return atan2(a.im, a.re); }
inline __device__ pwx_complex<double> cexp(pwx_complex<double> a) {
  return {exp(a.re) * cos(a.im), exp(a.re) * sin(a.im)};
}
inline __device__ float crealf(pwx_complex<float> a) { return a.re; }
inline __device__ float cimagf(pwx_complex<float> a) { return a.im; }
inline __device__ pwx_complex<float> conjf(pwx_complex<float> a) { return {a.re, -a.im}; }
inline __device__ float cabsf(pwx_complex<float> a) { return hypotf(a.re, a.im); }
inline __device__ float cargf(pwx_complex<float> a) { return atan2f(a.im, a.re); }
inline __device__ pwx_complex<float> cexpf(pwx_complex<float> a) {
  return {expf(a.re) * cosf(a.im), expf(a.re) * sinf(a.im)};
}
