// A reduction of values on the GPUs of several ranks in one launch, by the all-reduce inside kernels of
// Peerway's headers.
#include "peerway/device/all_reduce.cuh"

// Waits for the work before this kernel: its launch overlaps that work (pwx_kernel::reduces_ranks).
inline __device__ void pwx_in_order() {
  pwx_wait();
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// All threads of a grid. No thread needs to know how the waits of others ended: the guard reports it.
struct pwx_grid {
  __device__ unsigned index() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ unsigned count() const { return gridDim.x * blockDim.x; }
  __device__ bool all(bool yes) const { return yes; }
};

// Replaces the values by the result of `op` for all ranks' values. `epochs` says how often each block has
// run: the kernel counts itself, so that replays of a graph count like launches. All ranks must call it with
// the same grid, and all find the same in `state`, where a loop that has ended needs no reduction.
template <class Op, class T>
__device__ void pwx_reduce_ranks(Op op, T* values, long count, const pw_all_reduce_handle& ranks,
                                 unsigned long long* epochs, const int* state) {
  pwx_in_order();
  if (!pwx_goes_on(state)) return;
  const unsigned long long epoch = peerway::device::detail::load_relaxed(&epochs[blockIdx.x]) + 1;
  __syncthreads();
  if (threadIdx.x == 0) peerway::device::detail::store_relaxed(&epochs[blockIdx.x], epoch);
  peerway::device::all_reduce(pwx_grid(), ranks, epoch, op, values, values, count);
}
