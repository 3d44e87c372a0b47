// Reductions: of a warp, of a block, and of all threads of a kernel in one launch. A warp has 32 lanes on
// every GPU, also where a wavefront of 64 threads holds two: so the order of values, and the bits, are the
// same.

#if defined(PWX_ON_AMD)
// The word of the lane that is `distance` higher. The words of lanes outside this warp are not used.
inline __device__ int pwx_shuffled(unsigned, int word, int distance) {
  const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  return __builtin_amdgcn_ds_bpermute((lane + distance) * 4, word);
}
inline __device__ long long pwx_shuffled(unsigned lanes, long long word, int distance) {
  const int low = pwx_shuffled(lanes, (int)word, distance);
  const int high = pwx_shuffled(lanes, (int)(word >> 32), distance);
  return (long long)high << 32 | (unsigned)low;
}
// Loads a word that another block stored during this launch, past the caches that are not shared.
template <class Word>
inline __device__ Word pwx_load_shared(const Word* from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// Stores a word in the host's memory, for a host that polls it.
inline __device__ void pwx_store_for_host(unsigned long long* to, unsigned long long word) {
  __hip_atomic_store(to, word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
#else
template <class Word>
__device__ Word pwx_shuffled(unsigned lanes, Word word, int distance) {
  return __shfl_down_sync(lanes, word, distance);
}
template <class Word>
__device__ Word pwx_load_shared(const Word* from) {
  return *(const volatile Word*)from;
}
inline __device__ void pwx_store_for_host(unsigned long long* to, unsigned long long word) {
  *(volatile unsigned long long*)to = word;
}
#endif

// The value of the lane that is `distance` higher, for any type that can be reduced.
template <class T>
__device__ T pwx_from_lane(unsigned lanes, T value, int distance) {
  if constexpr (sizeof(T) % 8 == 0) {
    long long words[sizeof(T) / 8];
    memcpy(words, &value, sizeof(T));
    for (long long& word : words) word = pwx_shuffled(lanes, word, distance);
    memcpy(&value, words, sizeof(T));
  } else {
    int bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = pwx_shuffled(lanes, bits, distance);
    memcpy(&value, &bits, sizeof(T));
  }
  return value;
}

// Reads a value that another block wrote during this launch.
template <class T>
__device__ T pwx_fresh(const T* from) {
  if constexpr (sizeof(T) % 8 != 0) {
    return pwx_load_shared(from);
  } else {
    unsigned long long words[sizeof(T) / 8];
    for (unsigned i = 0; i < sizeof(T) / 8; ++i)
      words[i] = pwx_load_shared((const unsigned long long*)from + i);
    T value;
    memcpy(&value, words, sizeof(T));
    return value;
  }
}

// Gives lane 0 the combined value of all `count` lanes of the warp; the order is always the same.
template <class Op, class T>
__device__ T pwx_warp(Op op, T value, int lane, int count) {
  const unsigned lanes = count == 32 ? ~0u : (1u << count) - 1;
  for (int distance = 16; distance > 0; distance /= 2) {
    const T other = pwx_from_lane(lanes, value, distance);
    if (lane + distance < count) value = op(value, other);
  }
  return value;
}

// Gives all threads of the block the combined value of the block. Blocks have one dimension.
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

// Combines the values of all threads of a kernel in one launch. The block that finishes last combines the
// values of all blocks, in their order, so that the same launch gives the same bits.
template <class T>
struct pwx_total {
  static constexpr unsigned kTogether = 8;  // loads that are under way at once

  T* of_blocks;
  unsigned* done;            // number of blocks that are done; zero between launches
  T* result;                 // combined with its old value; or null, and the host gets the result:
  unsigned long long* host;  // each word has 4 bytes of it, and `number` above them
  unsigned number;

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
    for (unsigned first = threadIdx.x; first < blocks; first += kTogether * blockDim.x) {
      T fresh[kTogether];
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        const unsigned block = first + k * blockDim.x;
        fresh[k] = block < blocks ? pwx_fresh(&of_blocks[block]) : Op::template neutral<T>();
      }
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) total = op(total, fresh[k]);
    }
    total = pwx_block(op, total);
    if (threadIdx.x != 0) return;
    *done = 0;
    if (result != nullptr)
      *result = op(*result, total);
    else
      tell(total);
  }

  // Each word shows by itself that it has arrived: a fence before a flag would wait for the link to the host.
  __device__ void tell(T value) const {
    constexpr unsigned count = (sizeof(T) + 3) / 4;
    unsigned words[count] = {};
    memcpy(words, &value, sizeof(T));
    for (unsigned i = 0; i < count; ++i)
      pwx_store_for_host(host + i, words[i] | (unsigned long long)number << 32);
  }
};
