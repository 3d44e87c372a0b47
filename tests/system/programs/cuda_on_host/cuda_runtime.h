// As much of CUDA as apps/lqcd/cuda_mpi.cu uses, on the CPU: memory is the host's, streams do all at once,
// and the threads of a block are coroutines that take turns at barriers. The test turns
// `kernel<<<...>>>(...)` into cuda_on_host::launch(kernel, ...)(...) and compiles with g++; results are then
// checked without a GPU.
#pragma once
#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __host__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) double2 {
  double x, y;
};
inline double2 make_double2(double x, double y) { return {x, y}; }

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_on_host {

constexpr size_t kStack = 64 << 10;

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done = false;
};

inline ucontext_t scheduler;
inline Thread* running;
inline std::function<void()> body;
inline double shuffled[1024];

inline void barrier() { swapcontext(&running->context, &scheduler); }

inline void run_thread() {
  body();
  running->done = true;
}

// Each thread goes on to its next barrier, in turn, until all have returned.
inline void run_block(unsigned count) {
  static std::vector<Thread> threads;
  if (threads.size() < count) threads.resize(count);
  for (unsigned i = 0; i < count; i++) {
    Thread& thread = threads[i];
    thread.done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = &scheduler;
    makecontext(&thread.context, run_thread, 0);
  }
  for (unsigned left = count; left;)
    for (unsigned i = 0; i < count; i++) {
      if (threads[i].done) continue;
      threadIdx = dim3(i), running = &threads[i];
      swapcontext(&scheduler, &running->context);
      left -= running->done;
    }
}

template <class Kernel>
auto launch(Kernel kernel, dim3 blocks, dim3 threads, size_t, int) {
  return [=](auto... arguments) {
    body = [=] { kernel(arguments...); }, gridDim = blocks, blockDim = threads;
    for (unsigned z = 0; z < blocks.z; z++)
      for (unsigned y = 0; y < blocks.y; y++)
        for (unsigned x = 0; x < blocks.x; x++) {
          blockIdx = dim3(x, y, z);
          run_block(threads.x);
        }
  };
}

}  // namespace cuda_on_host

inline void __syncthreads() { cuda_on_host::barrier(); }
inline void __threadfence() {}
template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
inline double __shfl_down_sync(unsigned, double value, unsigned by) {
  cuda_on_host::shuffled[threadIdx.x] = value;
  cuda_on_host::barrier();
  const double other = threadIdx.x % 32 + by < 32 ? cuda_on_host::shuffled[threadIdx.x + by] : value;
  cuda_on_host::barrier();
  return other;
}
inline unsigned atomicInc(unsigned* counter, unsigned most) {
  const unsigned before = *counter;
  *counter = before >= most ? 0 : before + 1;
  return before;
}

using cudaStream_t = int;
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyDefault, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking };
struct cudaDeviceProp {
  char name[256];
};

template <class T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  *memory = static_cast<T*>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T>
cudaError_t cudaMallocHost(T** memory, size_t bytes) {
  return cudaMalloc(memory, bytes);
}
inline cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(to, value, bytes);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "out of memory"; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, int) {
  *stream = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  strcpy(properties->name, "CPU");
  return cudaSuccess;
}
