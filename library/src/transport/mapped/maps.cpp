#include "transport/mapped/maps.h"

#include "base/status.h"

namespace pw {
namespace {

// Maps the pages of the region and not of its whole allocation: a small array out of a large pool must not
// fill BAR1.
Allocation part_of_allocation(const Region& region) {
  Allocation part = region.allocation();
  part.base = region.address();
  part.bytes = region.bytes();
  return part;
}

}  // namespace

CpuMapping* CpuMaps::find(Region& region, std::string& why_not) {
  Region::CpuMap& known = region.cpu_map;
  if (CpuMapping* mapping = known.ready.load(std::memory_order_acquire)) return mapping;
  std::lock_guard lock(mutex_);
  if (known.mapping == nullptr && known.why_not.empty()) {
    try {
      known.mapping = region.device().map_for_cpu(part_of_allocation(region));
      known.ready.store(known.mapping.get(), std::memory_order_release);
    } catch (const Error& error) {
      known.why_not = error.what();
    }
  }
  why_not = known.why_not;
  return known.mapping.get();
}

}  // namespace pw
