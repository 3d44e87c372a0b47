// Maps CUDA memory for the CPU. There are two ways, tried in this order: GDRCopy's library, and mmap of a
// dma-buf. Only the owner of memory can map it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace pw::cuda {

class CpuMapper {
 public:
  virtual ~CpuMapper() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  ///< "gdrcopy", "dma-buf"

  /// Maps an allocation of `device` in this process. Throws Error with the reason and what to do.
  virtual std::unique_ptr<CpuMapping> map(Device& device, const Allocation& allocation) = 0;
};

/// Maps by GDRCopy's library (empty: libgdrapi.so.2). Returns null if it cannot be used, with the reason in
/// `why`.
std::unique_ptr<CpuMapper> make_gdrcopy_mapper(const std::string& library, std::string& why);

/// Maps by mmap of Device::dma_buf; the first map() shows whether the driver supports that.
std::unique_ptr<CpuMapper> make_dmabuf_mapper();

/// Returns the first mapping that one of `mappers` makes. Throws Error with all their reasons; `before` has
/// reasons from finding the mappers.
std::unique_ptr<CpuMapping> map_for_cpu(const std::vector<std::unique_ptr<CpuMapper>>& mappers,
                                        const std::string& before, Device& device,
                                        const Allocation& allocation);

}  // namespace pw::cuda
