// What stands before the text of every kernel that `peerway cc` generates: types, reductions, atomics. Device
// code.
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#endif

// The memory of an array begins at a multiple of 16 bytes; `at` is a multiple of `step` away from there. Lets
// the compiler read and write neighbours together.
#define PWX_ALIGNED(at, step) __builtin_assume((step) % 16 != 0 || (reinterpret_cast<uint64_t>(at) & 15) == 0)

// The extremes of a type, of which C++'s header is not there.
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

// An array of N dimensions whose sizes behind the first are known at run time alone: a[i][j] as in C.
template <class T, int N>
struct pwx_rows {
  T* at;
  long ld[N - 1];
  __device__ auto operator[](long i) const {
    if constexpr (N == 2) {
      return at + i * ld[0];
    } else {
      long step = 1;
      pwx_rows<T, N - 1> inner;
      for (int d = 0; d < N - 1; ++d) step *= ld[d];
      for (int d = 1; d < N - 1; ++d) inner.ld[d - 1] = ld[d];
      inner.at = at + i * step;
      return inner;
    }
  }
};

// The bounds that a loop has on this node, as loops.h has them for CPUs.
struct pwx_span {
  long first, last;
};
inline __device__ bool pwx_is_in(pwx_span span, long i) { return span.first <= i && i <= span.last; }
inline __device__ long pwx_first(pwx_span span, long first, long step) {
  return first >= span.first ? first : first + (span.first - first + step - 1) / step * step;
}
inline __device__ long pwx_below(pwx_span span, long last) {
  return last <= span.last ? last : span.last + 1;
}
inline __device__ long pwx_up_to(pwx_span span, long last) { return last <= span.last ? last : span.last; }
inline __device__ long pwx_first_down(pwx_span span, long first, long step) {
  return first <= span.last ? first : first - (first - span.last + step - 1) / step * step;
}
inline __device__ long pwx_above(pwx_span span, long last) {
  return last >= span.first ? last : span.first - 1;
}
inline __device__ long pwx_down_to(pwx_span span, long last) {
  return last >= span.first ? last : span.first;
}

// C's complex numbers, which C++ has as a class: real part, then imaginary part.
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
PWX_MIXED(+)
PWX_MIXED(-)
PWX_MIXED(*) PWX_MIXED(/) PWX_MIXED(==)
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

// What a node owns of a cyclic dimension, as loops.h has it for CPUs; and where its memory has an index.
struct pwx_cycle {
  long lower, upper, width, parts, at;
};
inline __device__ long pwx_before(pwx_cycle cycle, long end) {
  const long from = end > cycle.upper + 1 ? cycle.upper + 1 - cycle.lower : end - cycle.lower;
  const long round = cycle.width * cycle.parts;
  const long rest = from % round - cycle.at * cycle.width;
  if (from <= 0 || cycle.at < 0) return 0;
  return from / round * cycle.width + (rest < 0 ? 0 : rest > cycle.width ? cycle.width : rest);
}
inline __device__ long pwx_at(pwx_cycle cycle, long count) {
  return cycle.lower + (count / cycle.width * cycle.parts + cycle.at) * cycle.width + count % cycle.width;
}
inline __device__ long pwx_local(pwx_cycle cycle, long i) {
  const long u = i - cycle.lower;
  return u / (cycle.width * cycle.parts) * cycle.width + u % cycle.width;
}

// The value of the lane `distance` further, for any type that a reduction may have.
template <class T>
__device__ T pwx_from_lane(unsigned lanes, T value, int distance) {
  if constexpr (sizeof(T) == 8) {
    long long bits;
    memcpy(&bits, &value, 8);
    bits = __shfl_down_sync(lanes, bits, distance);
    memcpy(&value, &bits, 8);
  } else {
    int bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = __shfl_down_sync(lanes, bits, distance);
    memcpy(&value, &bits, sizeof(T));
  }
  return value;
}

// Lane 0 has the value of all `count` lanes of the warp, joined in an order that is always the same.
template <class Op, class T>
__device__ T pwx_warp(Op op, T value, int lane, int count) {
  const unsigned lanes = count == 32 ? ~0u : (1u << count) - 1;
  for (int distance = 16; distance > 0; distance /= 2) {
    const T other = pwx_from_lane(lanes, value, distance);
    if (lane + distance < count) value = op(value, other);
  }
  return value;
}

// All threads of the block have the value of the whole block. Blocks have one dimension.
template <class Op, class T>
__device__ T pwx_block(Op op, T value) {
  __shared__ T of_warps[32];
  const int thread = threadIdx.x, threads = blockDim.x, warps = (threads + 31) / 32;
  const int warp = thread / 32, lane = thread % 32;
  value = pwx_warp(op, value, lane, min(32, threads - warp * 32));
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  if (warp == 0 && lane < warps) of_warps[lane] = pwx_warp(op, of_warps[lane], lane, warps);
  __syncthreads();
  value = of_warps[0];
  __syncthreads();  // before the next call writes there
  return value;
}

// Joins the values of all threads of a kernel in one launch: the block that comes last joins those of the
// blocks, in their order, so that the same launch gives the same bits.
template <class T>
struct pwx_total {
  T* of_blocks;
  unsigned* done;  // blocks; zero between launches
  T* result;
  int join;  // 1: with what the result has

  template <class Op>
  __device__ void add(Op op, T value) const {
    __shared__ bool is_last;
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    value = pwx_block(op, value);
    if (threadIdx.x == 0) {
      of_blocks[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = value;
      __threadfence();
      is_last = atomicAdd(done, 1u) == blocks - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    T total = Op::template neutral<T>();
    for (unsigned block = threadIdx.x; block < blocks; block += blockDim.x)
      total = op(total, *(volatile T*)&of_blocks[block]);
    total = pwx_block(op, total);
    if (threadIdx.x == 0) {
      *result = join ? op(*result, total) : total;
      *done = 0;
    }
  }
};

// x = change(x), whatever others do meanwhile; gives the value from before.
template <class T, class Change>
__device__ T pwx_atomic_update(T& x, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "atomics are of 2, 4 or 8 bytes");
  if constexpr (sizeof(T) == 8) {
    unsigned long long* word = (unsigned long long*)&x;
    unsigned long long old = *(volatile unsigned long long*)word, seen;
    T before;
    do {
      seen = old;
      memcpy(&before, &seen, 8);
      const T after = change(before);
      unsigned long long wanted;
      memcpy(&wanted, &after, 8);
      old = atomicCAS(word, seen, wanted);
    } while (old != seen);
    return before;
  } else if constexpr (sizeof(T) == 4) {
    unsigned* word = (unsigned*)&x;
    unsigned old = *(volatile unsigned*)word, seen;
    T before;
    do {
      seen = old;
      memcpy(&before, &seen, 4);
      const T after = change(before);
      unsigned wanted;
      memcpy(&wanted, &after, 4);
      old = atomicCAS(word, seen, wanted);
    } while (old != seen);
    return before;
  } else {
    unsigned short* word = (unsigned short*)&x;
    unsigned short old = *(volatile unsigned short*)word, seen;
    T before;
    do {
      seen = old;
      memcpy(&before, &seen, 2);
      const T after = change(before);
      unsigned short wanted;
      memcpy(&wanted, &after, 2);
      old = atomicCAS(word, seen, wanted);
    } while (old != seen);
    return before;
  }
}

// x = op(x, value); gives the value from before.
template <class Op, class T>
__device__ T pwx_atomic(Op op, T& x, T value) {
  return pwx_atomic_update(x, [&](T before) { return op(before, value); });
}
inline __device__ float pwx_atomic(pwx_sum, float& x, float value) { return atomicAdd(&x, value); }
inline __device__ double pwx_atomic(pwx_sum, double& x, double value) { return atomicAdd(&x, value); }
inline __device__ int pwx_atomic(pwx_sum, int& x, int value) { return atomicAdd(&x, value); }
inline __device__ unsigned pwx_atomic(pwx_sum, unsigned& x, unsigned value) { return atomicAdd(&x, value); }

template <class T>
__device__ T pwx_atomic_read(const T& x) {
  return *(const volatile T*)&x;
}
template <class T>
__device__ void pwx_atomic_write(T& x, T value) {
  *(volatile T*)&x = value;
}
