// What HIPRTC's own header gives device code, as far as Peerway's kernels use it: with it and clang's
// headers, clang alone compiles them for AMD GPUs (amd_compiler.py).
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))

struct uint4 {
  unsigned x, y, z, w;
};
struct amdgpu_index {
  unsigned x, y, z;
};

#define PW_AMDGPU_ID(of) \
  (amdgpu_index{__builtin_amdgcn_##of##_x(), __builtin_amdgcn_##of##_y(), __builtin_amdgcn_##of##_z()})
#define threadIdx PW_AMDGPU_ID(workitem_id)
#define blockIdx PW_AMDGPU_ID(workgroup_id)
#define blockDim PW_AMDGPU_ID(workgroup_size)
#define gridDim                                                                       \
  (amdgpu_index{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(), \
                __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(), \
                __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z()})

__device__ inline void __trap() { __builtin_trap(); }
__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__device__ inline long long clock64() { return static_cast<long long>(__builtin_readcyclecounter()); }
__device__ inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
__device__ inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
template <typename T>
__device__ T __ldg(const T* from) {
  return *from;
}

__device__ inline unsigned atomicInc(unsigned* word, unsigned last) {
  return __builtin_amdgcn_atomic_inc32(word, last, __ATOMIC_RELAXED, "agent");
}
template <typename T>
__device__ T atomicMax(T* word, T value) {
  return __hip_atomic_fetch_max(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#define PW_AMDGPU_ADD(type)                                                                 \
  __device__ inline type atomicAdd(type* word, type value) {                                \
    return __hip_atomic_fetch_add(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
PW_AMDGPU_ADD(int)
PW_AMDGPU_ADD(unsigned)
PW_AMDGPU_ADD(unsigned long long)
PW_AMDGPU_ADD(float)
PW_AMDGPU_ADD(double)
#undef PW_AMDGPU_ADD
