// The shared memory that a launch gives each block.
#ifndef HPL_SHARED_CUDA_CUH
#define HPL_SHARED_CUDA_CUH

#ifndef HPL_ON_CPU  // panel_cuda_test.cpp has it for the CPU
namespace hpl {

__device__ inline double* shared_memory() {
  extern __shared__ double memory[];
  return memory;
}

}  // namespace hpl
#endif

#endif
