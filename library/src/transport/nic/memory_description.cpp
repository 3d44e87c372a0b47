#include "transport/nic/memory_description.h"

#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

namespace pw::nic {

MemoryDescription::MemoryDescription(Region& region)
    : nic_span_{sizeof(pw_nic_span), region.address(), region.bytes(), PW_NIC_HOST, 0, -1, 0} {
  if (region.device().id().kind == PW_HOST) {
    const Export& exported = region.exported();
    if (exported.handle != Handle::memfd) return;
    nic_span_.descriptor = exported.descriptor;
    nic_span_.descriptor_offset = exported.offset;
    return;
  }
  nic_span_.kind = static_cast<pw_nic_memory_kind>(region.device().id().kind);
  nic_span_.device = region.device().id().index;
  const Allocation& allocation = region.allocation();
  try {
    dma_buf_ = Descriptor(region.device().dma_buf(allocation));
  } catch (const Error& error) {  // the plugin may be able to register the memory by its address
    log_once(LogLevel::info, error.what());
    return;
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  nic_span_.descriptor = dma_buf_.get();
  nic_span_.descriptor_offset =
      reinterpret_cast<uint64_t>(region.address()) -
      reinterpret_cast<uint64_t>(allocation.base) / page * page;  // where the mapping begins
}

}  // namespace pw::nic
