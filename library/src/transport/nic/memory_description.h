// Describes a region to a NIC's plugin.
#pragma once

#include "base/descriptor.h"
#include "memory/region.h"
#include "peerway/nic.h"

namespace pw::nic {

/// Holds a pw_nic_span, and the file behind the memory if there is one; for GPU memory it makes a dma-buf.
class MemoryDescription {
 public:
  explicit MemoryDescription(Region& region);
  [[nodiscard]] const pw_nic_span& nic_span() const { return nic_span_; }

 private:
  pw_nic_span nic_span_;
  Descriptor dma_buf_;
};

}  // namespace pw::nic
