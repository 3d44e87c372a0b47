// Copies of variables of a few bytes from the GPU. Each goes to pinned memory first, so that the host waits
// once for many; the driver waits for each copy to other memory.
#pragma once

#include <cstddef>
#include <vector>

#include "device/cuda/driver.h"

namespace pwx {

/// The largest variable that is copied in this way.
constexpr size_t kSmallCopy = 64;

/// Copies from the work without a queue, which are complete after finish().
class SmallCopies {
 public:
  void to_host(void* host, pw::cuda::CUdeviceptr device, size_t bytes);
  void finish();

 private:
  struct Copy {
    void* host;
    size_t bytes;
  };
  std::vector<Copy> copies_;  ///< the n-th is in the n-th place of the pinned memory
};

/// Call it before the context ends.
void free_small_copies();

}  // namespace pwx
