// Reductions: of a warp, of a block, and of all threads of a kernel in one launch. A warp has 32 lanes on
// every GPU, also where a wavefront of 64 threads holds two: so the order of values, and the bits, are the
// same.

// Another lane of the warp, whose `lanes` all ask: the one that is `distance` higher, and the first. `word`
// gives its word.
struct pwx_higher_lane {
  unsigned lanes;
  int distance;
  template <class Word>
  __device__ Word word(Word own) const;
};
struct pwx_first_lane {
  unsigned lanes;
  template <class Word>
  __device__ Word word(Word own) const;
};

#if defined(PWX_ON_AMD)
// The word of a lane of the wavefront.
inline __device__ int pwx_word_of(int lane, int word) { return __builtin_amdgcn_ds_bpermute(lane * 4, word); }
inline __device__ long long pwx_word_of(int lane, long long word) {
  const int low = pwx_word_of(lane, (int)word), high = pwx_word_of(lane, (int)(word >> 32));
  return (long long)high << 32 | (unsigned)low;
}
inline __device__ int pwx_own_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
// The words of lanes outside this warp are not used.
template <class Word>
__device__ Word pwx_higher_lane::word(Word own) const {
  return pwx_word_of(pwx_own_lane() + distance, own);
}
template <class Word>
__device__ Word pwx_first_lane::word(Word own) const {
  return pwx_word_of(pwx_own_lane() & ~31, own);
}
// Stores a word for another block of this launch, and loads one, past the caches that are not shared.
inline __device__ void pwx_store_shared(unsigned long long* to, unsigned long long word) {
  __hip_atomic_store(to, word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
inline __device__ unsigned long long pwx_load_shared(const unsigned long long* from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// Stores a word in the host's memory, for a host that polls it.
inline __device__ void pwx_store_for_host(unsigned long long* to, unsigned long long word) {
  __hip_atomic_store(to, word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
#else
template <class Word>
__device__ Word pwx_higher_lane::word(Word own) const {
  return __shfl_down_sync(lanes, own, distance);
}
template <class Word>
__device__ Word pwx_first_lane::word(Word own) const {
  return __shfl_sync(lanes, own, 0);
}
inline __device__ void pwx_store_shared(unsigned long long* to, unsigned long long word) {
  *(volatile unsigned long long*)to = word;
}
inline __device__ unsigned long long pwx_load_shared(const unsigned long long* from) {
  return *(const volatile unsigned long long*)from;
}
inline __device__ void pwx_store_for_host(unsigned long long* to, unsigned long long word) {
  *(volatile unsigned long long*)to = word;
}
#endif

// The value of another lane, for any type that can be reduced.
template <class T, class Lane>
__device__ T pwx_from(Lane lane, T value) {
  if constexpr (sizeof(T) % 8 == 0) {
    long long words[sizeof(T) / 8];
    memcpy(words, &value, sizeof(T));
    for (long long& word : words) word = lane.word(word);
    memcpy(&value, words, sizeof(T));
  } else {
    int bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = lane.word(bits);
    memcpy(&value, &bits, sizeof(T));
  }
  return value;
}

// A value in words of which each shows by itself that it has arrived: 4 bytes of the value, and above them a
// sequence number that the word did not have before. A fence before a flag would take longer.
template <class T>
struct pwx_numbered {
  static constexpr unsigned kWords = (sizeof(T) + 3) / 4;
  unsigned long long words[kWords];

  pwx_numbered() = default;
  __device__ pwx_numbered(T value, unsigned number) {
    unsigned parts[kWords] = {};
    memcpy(parts, &value, sizeof(T));
    for (unsigned i = 0; i < kWords; ++i) words[i] = parts[i] | (unsigned long long)number << 32;
  }
  __device__ bool has(unsigned number) const {
    bool all = true;
    for (unsigned long long word : words) all = all && word >> 32 == number;
    return all;
  }
  __device__ T value() const {
    unsigned parts[kWords];
    for (unsigned i = 0; i < kWords; ++i) parts[i] = (unsigned)words[i];
    T value;
    memcpy(&value, parts, sizeof(T));
    return value;
  }
  __device__ void store(unsigned long long* to) const {
    for (unsigned i = 0; i < kWords; ++i) pwx_store_shared(to + i, words[i]);
  }
  __device__ void load(const unsigned long long* from) {
    for (unsigned i = 0; i < kWords; ++i) words[i] = pwx_load_shared(from + i);
  }
  __device__ void store_for_host(unsigned long long* to) const {
    for (unsigned i = 0; i < kWords; ++i) pwx_store_for_host(to + i, words[i]);
  }
};

// Gives lane 0 the combined value of all `count` lanes of the warp; the order is always the same.
template <class Op, class T>
__device__ T pwx_warp(Op op, T value, int lane, int count) {
  const unsigned lanes = count == 32 ? ~0u : (1u << count) - 1;
  for (int distance = 16; distance > 0; distance /= 2) {
    const T other = pwx_from(pwx_higher_lane{lanes, distance}, value);
    if (lane + distance < count) value = op(value, other);
  }
  return value;
}

// The threads of a warp: a thread's number, and how many there are. Blocks on GPUs have whole warps
// (gpu/grid.cpp).
inline __device__ unsigned pwx_lane() { return threadIdx.x % 32; }
inline __device__ unsigned pwx_lanes() {
#if defined(PWX_WAIT_FOR_WARP_ON_CPU)
  return min(32u, blockDim.x - threadIdx.x / 32 * 32);
#else
  return 32;
#endif
}
inline __device__ unsigned pwx_mask_of_warp() { return ~0u >> (32 - pwx_lanes()); }
// All warps of the grid have numbers, too: that of this one, and how many there are.
inline __device__ unsigned pwx_warp_of_grid() {
  return blockIdx.x * ((blockDim.x + 31) / 32) + threadIdx.x / 32;
}
inline __device__ unsigned pwx_warps_of_grid() { return gridDim.x * ((blockDim.x + 31) / 32); }

// Each thread of the warp sees what the others stored before.
inline __device__ void pwx_wait_for_warp() {
#if defined(PWX_WAIT_FOR_WARP_ON_CPU)
  PWX_WAIT_FOR_WARP_ON_CPU();
#elif defined(PWX_ON_AMD)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp(pwx_mask_of_warp());
#endif
}

// Gives all threads of the warp the combined value of the warp.
template <class Op, class T>
__device__ T pwx_whole_warp(Op op, T value) {
  const unsigned lanes = pwx_mask_of_warp();
  value = pwx_warp(op, value, (int)pwx_lane(), (int)pwx_lanes());
  return pwx_from(pwx_first_lane{lanes}, value);
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

// Combines the values of all threads of a kernel in one launch. The last block waits for the values of the
// others and combines them in their order, so the same launch gives the same bits. No other block waits for
// one, so the GPU can begin them in any order.
//
// A launch numbers the values: by one more than the launch before it on this memory. The last block sets the
// number when all values have arrived, and a block stores its value after it has read the number.
template <class T>
struct pwx_total {
  using Numbered = pwx_numbered<T>;
  static constexpr unsigned kTogether = 2;  // values that a thread loads at once: more would cost registers

  unsigned long long* of_blocks;  // kWords of each block
  unsigned* last_number;          // of the launch before; never 0 behind a launch
  T* result;                      // combined with its old value; or null, and the host gets the result
  unsigned long long* host;
  unsigned number_for_host;

  template <class Op>
  __device__ void add(Op op, T value) const {
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const unsigned own = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned before = *(const volatile unsigned*)last_number;
    const unsigned number = before + 1 != 0 ? before + 1 : 1;
    value = pwx_block(op, value);
    if (own != blocks - 1) {
      if (threadIdx.x == 0) Numbered(value, number).store(of_blocks + own * Numbered::kWords);
      return;
    }
    T total = Op::template neutral<T>();
    for (unsigned first = threadIdx.x; first < blocks; first += kTogether * blockDim.x) {
      Numbered others[kTogether];
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k)
        if (const unsigned block = first + k * blockDim.x; block < own)
          others[k].load(of_blocks + block * Numbered::kWords);
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        const unsigned block = first + k * blockDim.x;
        if (block > own) break;
        while (block < own && !others[k].has(number)) others[k].load(of_blocks + block * Numbered::kWords);
        total = op(total, block < own ? others[k].value() : value);
      }
    }
    total = pwx_block(op, total);
    if (threadIdx.x != 0) return;
    *last_number = number;
    if (result != nullptr)
      *result = op(*result, total);
    else
      Numbered(total, number_for_host).store_for_host(host);
  }
};
