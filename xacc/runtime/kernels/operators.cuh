// The operators of reductions, and the limits of types (C++'s header <limits> is not available).
template <class T>
struct pwx_limits {
  static constexpr bool is_signed = T(-1) < T(0);
  static __device__ constexpr T highest() {
    if constexpr (!is_signed)
      return T(~T(0));
    else
      return T(((T(1) << (sizeof(T) * 8 - 2)) - 1) * 2 + 1);
  }
  static __device__ constexpr T lowest() {
    if constexpr (!is_signed)
      return T(0);
    else
      return T(-highest() - 1);
  }
};
template <>
struct pwx_limits<bool> {
  static __device__ constexpr bool highest() { return true; }
  static __device__ constexpr bool lowest() { return false; }
};
template <>
struct pwx_limits<float> {
  static __device__ float highest() { return __int_as_float(0x7f800000); }
  static __device__ float lowest() { return -__int_as_float(0x7f800000); }
};
template <>
struct pwx_limits<double> {
  static __device__ double highest() { return __longlong_as_double(0x7ff0000000000000ll); }
  static __device__ double lowest() { return -__longlong_as_double(0x7ff0000000000000ll); }
};

struct pwx_sum {
  template <class T>
  static __device__ T neutral() {
    return T(0);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a + b);
  }
};
struct pwx_product {
  template <class T>
  static __device__ T neutral() {
    return T(1);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a * b);
  }
};
struct pwx_max {
  template <class T>
  static __device__ T neutral() {
    return pwx_limits<T>::lowest();
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct pwx_min {
  template <class T>
  static __device__ T neutral() {
    return pwx_limits<T>::highest();
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct pwx_bit_and {
  template <class T>
  static __device__ T neutral() {
    return T(~T(0));
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct pwx_bit_or {
  template <class T>
  static __device__ T neutral() {
    return T(0);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct pwx_bit_xor {
  template <class T>
  static __device__ T neutral() {
    return T(0);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
struct pwx_and {
  template <class T>
  static __device__ T neutral() {
    return T(1);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a && b);
  }
};
struct pwx_or {
  template <class T>
  static __device__ T neutral() {
    return T(0);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a || b);
  }
};
