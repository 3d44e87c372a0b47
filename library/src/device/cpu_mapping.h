// Device memory mapped for the CPU, which stores and loads directly, without a queue.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw {

/// A device allocation that the CPU has mapped. On x86 the mapping is write-combined: stores are combined and
/// fast, loads are slow (about 1 GB/s).
class CpuMapping {
 public:
  virtual ~CpuMapping() = default;
  CpuMapping(const CpuMapping&) = delete;

  /// The address of the allocation's first byte in the mapping.
  [[nodiscard]] std::byte* address() const { return address_; }

  /// Copies into the mapping; `to` lies in it. A later store becomes visible after the copied bytes.
  virtual void store(std::byte* to, const std::byte* from, uint64_t bytes);
  /// Copies out of the mapping; `from` lies in it.
  virtual void load(std::byte* to, const std::byte* from, uint64_t bytes);

 protected:
  CpuMapping() = default;
  std::byte* address_ = nullptr;
};

}  // namespace pw
