// The panel factorization by kernels, for a process column of one rank.
#ifndef HPL_PANEL_CUDA_H
#define HPL_PANEL_CUDA_H

#include <cuda_runtime.h>

#include "cublas.h"
#include "device.h"

namespace hpl {

class CudaPanel {
 public:
  CudaPanel(CublasStream& blas, cudaStream_t stream);
  ~CudaPanel();
  CudaPanel(const CudaPanel&) = delete;
  CudaPanel& operator=(const CudaPanel&) = delete;
  /// Enqueues all of it; false if the panel has more rows than the GPU's shared memory takes.
  bool run(const Panel& panel);

 private:
  void part(const Panel& panel, int64_t begin, int64_t end);
  void leaf(const Panel& panel, int64_t begin, int64_t end);

  CublasStream& blas_;
  cudaStream_t stream_;
  int blocks_ = 0, leaf_ = 0;
  void* mail_ = nullptr;
  unsigned long long number_ = 1;
};

}  // namespace hpl

#endif
