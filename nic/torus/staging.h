// Buffers between GPU memory and datagrams. They hold more than a datagram, since each copy of the GPU costs
// as much time as many kilobytes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "torus/memory.h"

namespace pw::torus {

inline constexpr uint64_t kStaged = 256 << 10;  ///< bytes of a piece, at most

/// A source that is read from the front to the end.
class StagedSource {
 public:
  /// Copies the bytes at `from`, of which `remaining` are still to be read, to `to`. False when the driver
  /// failed.
  bool load(const Memory& memory, std::byte* to, const std::byte* from, uint64_t bytes, uint64_t remaining);

 private:
  const std::byte* begin_ = nullptr;  ///< in the GPU, of what is here
  std::vector<std::byte> bytes_;
};

/// A target that is stored to in order; bytes are held back until they are as many as a piece, or flush().
class StagedTarget {
 public:
  void store(const std::shared_ptr<Memory>& memory, std::byte* to, std::span<const std::byte> bytes);
  void flush();
  [[nodiscard]] bool failed() const { return failed_; }  ///< the driver did, at some time

 private:
  std::shared_ptr<Memory> memory_;
  std::byte* begin_ = nullptr;
  std::vector<std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace pw::torus
