// Buffers between GPU memory and datagrams. A buffer holds more than a datagram, because starting a copy of
// the GPU takes as long as moving many kilobytes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "torus/memory.h"

namespace pw::torus {

inline constexpr uint64_t kStaged = 256 << 10;  ///< the most bytes of a piece

/// A source that is read from front to end.
class StagedSource {
 public:
  /// Copies the bytes at `from` to `to`; `remaining` bytes, including these, are still to be read. Returns
  /// false if the driver failed.
  bool load(const Memory& memory, std::byte* to, const std::byte* from, uint64_t bytes, uint64_t remaining);

 private:
  const std::byte* begin_ = nullptr;  ///< address in the GPU of the buffered bytes
  std::vector<std::byte> bytes_;
};

/// A target that is stored to in order; bytes are buffered until they fill a piece, or until flush().
class StagedTarget {
 public:
  void store(const std::shared_ptr<Memory>& memory, std::byte* to, std::span<const std::byte> bytes);
  void flush();
  [[nodiscard]] bool failed() const { return failed_; }  ///< whether the driver has ever failed

 private:
  std::shared_ptr<Memory> memory_;
  std::byte* begin_ = nullptr;
  std::vector<std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace pw::torus
