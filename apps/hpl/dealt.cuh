// One dimension of the distribution for kernels; grid.h is its equivalent on the host.
#ifndef HPL_DEALT_CUH
#define HPL_DEALT_CUH

namespace hpl {

/// Rows or columns in blocks of `block`, dealt out in turn to `ranks` ranks; this rank is `mine`.
struct Dealt {
  long long block, ranks, mine;
  __device__ int owner(long long global) const { return static_cast<int>(global / block % ranks); }
  /// Returns the index at the owner.
  __device__ long long local(long long global) const {
    return global / block / ranks * block + global % block;
  }
  __device__ long long global(long long local, long long rank) const {
    return (local / block * ranks + rank) * block + local % block;
  }
  __device__ long long global(long long local) const { return global(local, mine); }
};

}  // namespace hpl

#endif
