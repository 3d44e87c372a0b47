// Registered memory for data on its way between program memory and other ranks.
#pragma once

#include <cstddef>
#include <optional>

#include "peerway/peerway.hpp"

namespace pwx {

class BounceBuffer {
 public:
  /// Returns a span of the memory. If none is left, it flushes all operations and starts again; until then,
  /// earlier spans stay valid.
  peerway::Span<pw_region> take(size_t bytes);
  [[nodiscard]] std::byte* at(const peerway::Span<pw_region>& span) const {
    return static_cast<std::byte*>(memory_->address()) + span.offset;
  }
  void free() { memory_.reset(); }

 private:
  std::optional<peerway::Region> memory_;
  size_t used_ = 0;
};

BounceBuffer& bounce();

}  // namespace pwx
