// Atomic reads, writes and updates of memory.

// The integer of this many bytes.
template <unsigned Bytes>
struct pwx_integer;
template <>
struct pwx_integer<2> {
  using type = unsigned short;
};
template <>
struct pwx_integer<4> {
  using type = unsigned;
};
template <>
struct pwx_integer<8> {
  using type = unsigned long long;
};

// Stores `wanted` if the word still holds `seen`; returns what it held.
template <class Word>
__device__ Word pwx_replace(Word* word, Word seen, Word wanted) {
#if defined(PWX_ON_AMD)  // whose atomicCAS() has no words of 2 bytes
  __hip_atomic_compare_exchange_strong(word, &seen, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return seen;
#else
  return atomicCAS(word, seen, wanted);
#endif
}

// Atomically sets x = change(x), and returns the old value.
template <class T, class Change>
__device__ T pwx_atomic_update(T& x, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "atomics are of 2, 4 or 8 bytes");
  using Word = typename pwx_integer<sizeof(T)>::type;
  Word* word = (Word*)&x;
  Word old = *(volatile Word*)word, seen;
  T before;
  do {
    seen = old;
    memcpy(&before, &seen, sizeof(T));
    const T after = change(before);
    Word wanted;
    memcpy(&wanted, &after, sizeof(T));
    old = pwx_replace(word, seen, wanted);
  } while (old != seen);
  return before;
}

// Atomically sets x = op(x, value), and returns the old value.
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
