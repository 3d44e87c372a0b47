// Scopes: the threads that work together, which are one thread, a warp, or a block. Every function of
// device.cuh takes a scope first, and all threads of the scope call it with the same arguments.
#ifndef PEERWAY_DEVICE_SCOPE_CUH
#define PEERWAY_DEVICE_SCOPE_CUH

#include "peerway/device/memory.cuh"

namespace peerway::device {

/// The calling thread alone.
struct Thread {
  PW_ON_DEVICE unsigned index() const { return 0; }
  PW_ON_DEVICE unsigned count() const { return 1; }
  PW_ON_DEVICE void sync() const {}
  PW_ON_DEVICE bool all(bool yes) const { return yes; }
};

#if defined(PW_ON_NVIDIA)

/// The 32 threads of a warp.
struct Warp {
  PW_ON_DEVICE unsigned index() const {
    unsigned lane;
    asm("mov.u32 %0, %laneid;" : "=r"(lane));
    return lane;
  }
  PW_ON_DEVICE unsigned count() const { return 32; }
  PW_ON_DEVICE void sync() const { __syncwarp(); }
  PW_ON_DEVICE bool all(bool yes) const {
    __syncwarp();  // a vote alone does not order what the threads have stored
    return __all_sync(0xffffffffu, yes) != 0;
  }
};

/// All threads of a one-dimensional thread block. (peerway::Block is a range of memory.)
struct Block {
  PW_ON_DEVICE unsigned index() const { return threadIdx.x; }
  PW_ON_DEVICE unsigned count() const { return blockDim.x; }
  PW_ON_DEVICE void sync() const { __syncthreads(); }
  PW_ON_DEVICE bool all(bool yes) const { return __syncthreads_and(yes) != 0; }
};

#elif defined(PW_ON_AMD)

/// The threads of a wavefront: 64, or 32 on some GPUs. Only the compiler knows how many.
struct Warp {
  PW_ON_DEVICE unsigned index() const {
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  }
  PW_ON_DEVICE unsigned count() const { return __builtin_amdgcn_wavefrontsize(); }
  PW_ON_DEVICE void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
  }
  PW_ON_DEVICE bool all(bool yes) const {
    constexpr int kUnequal = 33;  // ICMP_NE: a bit for each thread whose number is not 0
    sync();
    return __builtin_amdgcn_uicmp(yes ? 0u : 1u, 0u, kUnequal) == 0;
  }
};

/// All threads of a one-dimensional thread block.
struct Block {
  PW_ON_DEVICE unsigned index() const { return __builtin_amdgcn_workitem_id_x(); }
  PW_ON_DEVICE unsigned count() const { return __builtin_amdgcn_workgroup_size_x(); }
  PW_ON_DEVICE void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  PW_ON_DEVICE bool all(bool yes) const {
    __shared__ unsigned refused;
    sync();  // a thread may still read the word of the vote before
    if (index() == 0) refused = 0;
    sync();
    if (!yes) __hip_atomic_store(&refused, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    sync();
    return refused == 0;
  }
};

#endif

}  // namespace peerway::device

#endif
