// Walks the blocks of a layout one after the other, as offsets on both sides, for paths that move them one by
// one.
#pragma once

#include "device/shape.h"

namespace pw {

class BlockCursor {
 public:
  /// `inner`: the number of fastest dimensions that the caller moves itself, as one block.
  explicit BlockCursor(const Layout& layout, uint32_t inner = 0)
      : layout_(layout), dims_(layout.shape.dims - inner), remaining_(1) {
    for (uint32_t d = 0; d < dims_; ++d) remaining_ *= layout.shape.count[d];
  }

  bool next(uint64_t& to, uint64_t& from) {
    if (remaining_ == 0) return false;
    to = to_;
    from = from_;
    if (--remaining_ > 0) step();
    return true;
  }

 private:
  void step() {
    for (uint32_t d = dims_; d-- > 0;) {
      to_ += static_cast<uint64_t>(layout_.to[d]);
      from_ += static_cast<uint64_t>(layout_.from[d]);
      if (++index_[d] < layout_.shape.count[d]) return;
      to_ -= static_cast<uint64_t>(layout_.to[d]) * layout_.shape.count[d];
      from_ -= static_cast<uint64_t>(layout_.from[d]) * layout_.shape.count[d];
      index_[d] = 0;
    }
  }

  Layout layout_;
  uint32_t dims_;
  uint64_t remaining_;
  uint64_t to_ = 0, from_ = 0;
  std::array<uint64_t, PW_MAX_DIMS> index_{};
};

}  // namespace pw
