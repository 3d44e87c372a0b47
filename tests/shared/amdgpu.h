// What HIPRTC's own header gives device code, as far as Peerway's kernels use it: with it, clang alone
// compiles them for AMD GPUs (test_amd_device_code.py).
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))

struct uint4 {
  unsigned x, y, z, w;
};
struct amdgpu_index {
  unsigned x;
};

#define threadIdx (amdgpu_index{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (amdgpu_index{__builtin_amdgcn_workgroup_id_x()})
#define blockDim (amdgpu_index{__builtin_amdgcn_workgroup_size_x()})
#define gridDim (amdgpu_index{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()})

__device__ inline void __trap() { __builtin_trap(); }
__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline unsigned atomicInc(unsigned* word, unsigned last) {
  return __builtin_amdgcn_atomic_inc32(word, last, __ATOMIC_RELAXED, "agent");
}
