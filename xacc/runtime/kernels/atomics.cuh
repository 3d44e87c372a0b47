// Atomic reads, writes and updates of memory.

// Atomically sets x = change(x), and returns the old value.
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
