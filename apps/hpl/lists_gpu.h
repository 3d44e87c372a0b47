// Lists of rows for kernels that gather and scatter them.
#ifndef HPL_LISTS_GPU_H
#define HPL_LISTS_GPU_H

#include <algorithm>
#include <array>
#include <vector>

#include "gpu_runtime.h"

namespace hpl {

/// Lists of rows for kernels: each copy is kept until the kernel has read it.
class Lists {
 public:
  const long long* put(const std::vector<int64_t>& rows, cudaStream_t stream) {
    Slot& slot = slots_[next_];
    if (slot.used) must(cudaEventSynchronize(slot.used), "cudaEventSynchronize");
    const size_t bytes = sizeof(int64_t) * rows.size();
    if (slot.bytes < bytes) {
      if (slot.host != nullptr) must(cudaFreeHost(slot.host), "cudaFreeHost");
      if (slot.device != nullptr) must(cudaFree(slot.device), "cudaFree");
      must(cudaMallocHost(&slot.host, 2 * bytes), "cudaMallocHost");
      must(cudaMalloc(&slot.device, 2 * bytes), "cudaMalloc");
      slot.bytes = 2 * bytes;
    }
    if (!slot.used) must(cudaEventCreateWithFlags(&slot.used, cudaEventDisableTiming), "cudaEventCreate");
    std::copy(rows.begin(), rows.end(), static_cast<int64_t*>(slot.host));
    must(cudaMemcpyAsync(slot.device, slot.host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    taken_.push_back(next_);
    next_ = (next_ + 1) % slots_.size();
    return static_cast<const long long*>(slot.device);
  }
  /// Call it after the kernel that reads the lists was launched.
  void launched(cudaStream_t stream) {
    for (const size_t slot : taken_) must(cudaEventRecord(slots_[slot].used, stream), "cudaEventRecord");
    taken_.clear();
  }
  ~Lists() {
    for (Slot& slot : slots_) {
      cudaFreeHost(slot.host);
      cudaFree(slot.device);
      if (slot.used) cudaEventDestroy(slot.used);
    }
  }

 private:
  struct Slot {
    void *host = nullptr, *device = nullptr;
    size_t bytes = 0;
    cudaEvent_t used = nullptr;
  };
  std::array<Slot, 16> slots_;
  size_t next_ = 0;
  std::vector<size_t> taken_;
};

}  // namespace hpl

#endif
