// The panel factorization by kernels, on the GPUs of a process column.
#ifndef HPL_PANEL_CUDA_H
#define HPL_PANEL_CUDA_H

#include "device.h"
#include "gpu_blas.h"

namespace hpl {

class CudaPanel {
 public:
  static const int64_t kMostRanks;
  CudaPanel(GpuBlasStream& blas, cudaStream_t stream);
  /// Returns the bytes for messages.
  static size_t room(int64_t nb);
  /// Returns the largest number of this GPU's blocks that a leaf can use; 0: its shared memory is too small.
  [[nodiscard]] int64_t blocks() const { return blocks_; }
  /// All ranks of the column call these functions with the same panels.
  void join(const PanelColumn& column);
  /// Enqueues the whole factorization; returns false if a rank has more rows than fit in the shared memory of
  /// its blocks.
  bool run(const Panel& panel);

 private:
  /// Returns the largest number of rows that a rank of the column has of the panel, from a column on.
  [[nodiscard]] int64_t most_rows(const Panel& panel, int64_t column) const;
  void part(const Panel& panel, int64_t begin, int64_t end);
  void leaf(const Panel& panel, int64_t begin, int64_t end);

  GpuBlasStream& blas_;
  cudaStream_t stream_;
  PanelColumn column_{};
  int64_t blocks_ = 0, most_blocks_ = 0, leaf_ = 0;  // most_blocks_: limit for each rank of the column
  unsigned long long number_ = 1;
};

}  // namespace hpl

#endif
