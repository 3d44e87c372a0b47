// Mapping device memory for the processor, so that it can store into it and load from it with no queue in
// between. Two ways, tried in this order: GDRCopy's library, and mmap of a dma-buf. Only the owner of memory
// can map it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace pw {

/// A device allocation as the processor sees it. On x86 it is write-combined: stores are gathered and fast,
/// loads are slow (about 1 GB/s).
class CpuMapping {
 public:
  virtual ~CpuMapping() = default;
  CpuMapping(const CpuMapping&) = delete;

  /// Where the first byte of the allocation appears.
  [[nodiscard]] std::byte* address() const { return address_; }

  /// Copies into the mapping; `to` lies in it. A store that follows is seen after the bytes.
  virtual void store(std::byte* to, const std::byte* from, uint64_t bytes);
  /// Copies out of the mapping; `from` lies in it.
  virtual void load(std::byte* to, const std::byte* from, uint64_t bytes);

 protected:
  CpuMapping() = default;
  std::byte* address_ = nullptr;
};

class CpuMapper {
 public:
  virtual ~CpuMapper() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  ///< "gdrcopy", "dma-buf"

  /// Maps an allocation of `device` in this process. Throws Error with the reason and what to do.
  virtual std::unique_ptr<CpuMapping> map(Device& device, const Allocation& allocation) = 0;
};

/// By GDRCopy's library (empty: libgdrapi.so.2). Null when it cannot be used, with the reason in `why`.
std::unique_ptr<CpuMapper> make_gdrcopy_mapper(const std::string& library, std::string& why);

/// By mmap of Device::dma_buf; whether the driver allows that shows at the first map().
std::unique_ptr<CpuMapper> make_dmabuf_mapper();

/// The first mapping that one of `mappers` makes. Throws Error with the reasons of all; `before` are reasons
/// from finding the mappers.
std::unique_ptr<CpuMapping> map_for_processor(const std::vector<std::unique_ptr<CpuMapper>>& mappers,
                                              const std::string& before, Device& device,
                                              const Allocation& allocation);

}  // namespace pw
