// Host memory that a device reads and writes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace pw {

/// Allocates host memory filled with zeros, and pins it for the device. Throws Error.
std::shared_ptr<void> pinned_memory(Device& device, uint64_t bytes);

/// Pinned memory in slots. A driver takes longer to pin a page than to make the rest of a plan.
class PinnedPool {
 public:
  static constexpr uint64_t kSlotBytes = 2048;

  explicit PinnedPool(Device& device) : slots_(std::make_shared<Slots>(device)) {}

  /// Returns a slot filled with zeros, which may outlive the pool. Throws Error.
  std::shared_ptr<void> take();

 private:
  struct Slots {
    explicit Slots(Device& of) : device(of) {}
    Device& device;
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> chunks;
    std::deque<void*> free;  ///< the one that was given back first is taken first
  };
  std::shared_ptr<Slots> slots_;
};

}  // namespace pw
