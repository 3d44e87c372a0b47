// The types of C in device code, and access to arrays of them. A kernel is compiled by NVRTC or, for AMD
// GPUs, by HIPRTC; tests compile it for a CPU.
#if defined(__HIP__)
#define PWX_ON_AMD 1
#endif

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#elif defined(PWX_ON_AMD)
// HIPRTC declares these names up to ROCm 6, some as other types than C on Linux; ROCm 7 does not.
typedef signed char pwx_int8;
typedef short pwx_int16;
typedef int pwx_int32;
typedef long pwx_int64;
typedef unsigned char pwx_uint8;
typedef unsigned short pwx_uint16;
typedef unsigned int pwx_uint32;
typedef unsigned long pwx_uint64;
#define int8_t pwx_int8
#define int16_t pwx_int16
#define int32_t pwx_int32
#define int64_t pwx_int64
#define uint8_t pwx_uint8
#define uint16_t pwx_uint16
#define uint32_t pwx_uint32
#define uint64_t pwx_uint64
#define intptr_t pwx_int64
#define uintptr_t pwx_uint64
// HIPRTC's own functions copy byte by byte.
#define memcpy __builtin_memcpy
#define memset __builtin_memset
#endif

// States that the memory of an array begins at a multiple of 16 bytes, so that the compiler can merge
// accesses to neighbouring elements.
#if defined(PWX_JOINED)
#define PWX_ALIGNED(at) __builtin_assume((reinterpret_cast<uint64_t>(at) & 15) == 0)
#else
#define PWX_ALIGNED(at)
#endif

// Begins a statement that one thread of the grid executes. Kernels with it are compiled without fused
// multiply-adds, so that arithmetic between loops has the bits that the host would give it.
#define PWX_ONE_THREAD if (blockIdx.x == 0 && threadIdx.x == 0)

// Waits for the end of the work before this kernel, and for what that has written. AMD GPUs, and NVIDIA's
// before compute capability 9.0, begin a kernel when the one before has ended.
inline __device__ void pwx_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#elif defined(PWX_WAIT_ON_CPU)
  PWX_WAIT_ON_CPU();
#endif
}

// Waits for the halos of a reflect that this kernel overlaps. Returns 0, which `zero` points to: an address
// that depends on it is not known before, so no compiler loads from there before the wait.
inline __device__ unsigned pwx_wait_for_halos(const unsigned* zero) {
  pwx_wait();
#if defined(__CUDA_ARCH__)
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(zero) : "memory");
  return value;
#else
  return *zero;
#endif
}

// In a program of one rank (PWX_ALONE) no kernel overlaps a reflect, and none has the code for it.
#if defined(PWX_ALONE)
constexpr bool pwx_alone = true;
#else
constexpr bool pwx_alone = false;
#endif

// Begins a kernel that may overlap a reflect before it. The next launch may be set up while this kernel runs,
// as this one was while the work before it ended. If `overlaps` is null, it waits for that. Otherwise that is
// a reflect, which lets this kernel begin when the work before the reflect has ended; then only iterations
// that may read halos wait. Without a wait, the first-level cache may still have what was there before that
// work.
inline __device__ void pwx_begin(const unsigned* overlaps) {
  if (pwx_alone) overlaps = nullptr;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  if (overlaps != nullptr) asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
#if defined(PWX_BEGIN_ON_CPU)
  PWX_BEGIN_ON_CPU(overlaps != nullptr);
#endif
  if (overlaps == nullptr) pwx_wait();
}
inline __device__ void pwx_begin_in_order() { pwx_begin(nullptr); }

// Ends such a kernel. Its first block waits, so the kernel ends after the reflect: work that waits for the
// kernel has then waited for both.
inline __device__ void pwx_end(const unsigned* overlaps) {
  if (pwx_alone) return;
  if (overlaps != nullptr && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) pwx_wait();
}

// Whether iteration `at` is one of the first or last `reach`.
inline __device__ bool pwx_near_end(unsigned at, unsigned count, unsigned reach) {
  if (pwx_alone) return false;
  return at < reach || at + reach >= count;
}
// The iteration that comes in place of `at` so that the first and last `reach` come last.
inline __device__ unsigned pwx_ends_last(unsigned at, unsigned count, unsigned reach) {
  if (pwx_alone || count <= reach) return at;
  return at + reach < count ? at + reach : at + reach - count;
}

// Whether a loop on the GPU goes on, for a kernel that may be of an iteration after the last one. `state` is
// null for kernels that always run. Read it after pwx_begin: an asm statement stays after those of that.
inline __device__ bool pwx_goes_on(const int* state) {
  constexpr int again = 1;  // PWX_LOOP_AGAIN
  if (state == nullptr) return true;
#if defined(__CUDA_ARCH__)
  int now;
  asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(now) : "l"(state) : "memory");
  return now == again;
#else
  return *state == again;
#endif
}

// A streaming load, of an element in the GPU's memory: the caches evict it first.
template <class T>
inline __device__ T pwx_read_once(const T& at) {
#if defined(PWX_ON_AMD)
  return __builtin_nontemporal_load(&at);
#elif defined(__CUDA_ARCH__)
  return __ldcs(&at);
#else
  return at;
#endif
}

// A value that is passed to a kernel by copy, such as an array.
template <class T>
struct pwx_value {
  T of;
};

// An array of N dimensions whose sizes after the first are known only at run time: a[i][j] as in C. T may be
// an array of known sizes.
template <class T, int N>
struct pwx_rows {
  T* __restrict__ at;
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

// The number of a thread among all threads of its kernel.
inline __device__ unsigned long pwx_thread() {
  const unsigned long block = (blockIdx.z * gridDim.y + blockIdx.y) * (unsigned long)gridDim.x + blockIdx.x;
  return block * blockDim.x + threadIdx.x;
}
