// The panel factorization on GPUs that have no kernels for it: AMD's. Their blocks have 64 KiB of fast
// memory, a third of what a leaf needs, and nothing promises that 16 bytes arrive as a whole, as its messages
// need. So the CPUs factorize the panels.
#ifndef HPL_PANEL_NONE_H
#define HPL_PANEL_NONE_H

#include "device.h"
#include "gpu_blas.h"

namespace hpl {

class NoPanel {
 public:
  static constexpr int64_t kMostRanks = 0;
  NoPanel(GpuBlasStream&, cudaStream_t) {}
  static size_t room(int64_t) { return 0; }
  [[nodiscard]] int64_t blocks() const { return 0; }
  void join(const PanelColumn&) {}
  bool run(const Panel&) { return false; }
};

}  // namespace hpl

#endif
