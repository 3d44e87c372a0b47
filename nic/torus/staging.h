// Buffers between GPU memory and datagrams. They hold more than a datagram, since each copy of the GPU costs
// as much time as many kilobytes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "torus/memory.h"

namespace pw::torus {

inline constexpr uint64_t kStaged = 256 << 10;  ///< bytes of a piece, at most

/// What is read from the front to the end.
class StagedSource {
 public:
  /// The bytes at `from` go to `to`; of `left` that are still to be read. False when the driver failed.
  bool load(const Memory& memory, std::byte* to, const std::byte* from, uint64_t bytes, uint64_t left);

 private:
  const std::byte* begin_ = nullptr;  ///< in the GPU, of what is here
  std::vector<std::byte> bytes_;
};

/// What is to be stored, in order; held back until it is as large as a piece, or flush().
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
