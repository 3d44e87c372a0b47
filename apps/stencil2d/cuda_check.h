// A CUDA call that must succeed.
#ifndef STENCIL2D_CUDA_CHECK_H
#define STENCIL2D_CUDA_CHECK_H

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace stencil {

inline void must(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("stencil2d: ") + call + " failed: " + cudaGetErrorString(status));
}

}  // namespace stencil

#endif
