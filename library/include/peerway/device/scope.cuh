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

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

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

#endif

}  // namespace peerway::device

#endif
