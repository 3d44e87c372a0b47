// Device memory mapped for the CPU, which then stores and loads directly, without a queue.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw {

/// A device allocation that the CPU has mapped. On x86 it is write-combined: stores are gathered and fast,
/// loads are slow (about 1 GB/s).
class CpuMapping {
 public:
  virtual ~CpuMapping() = default;
  CpuMapping(const CpuMapping&) = delete;

  /// The address at which the CPU sees the first byte of the allocation.
  [[nodiscard]] std::byte* address() const { return address_; }

  /// Copies into the mapping; `to` lies in it. A store that follows is seen after the bytes.
  virtual void store(std::byte* to, const std::byte* from, uint64_t bytes);
  /// Copies out of the mapping; `from` lies in it.
  virtual void load(std::byte* to, const std::byte* from, uint64_t bytes);

 protected:
  CpuMapping() = default;
  std::byte* address_ = nullptr;
};

}  // namespace pw
