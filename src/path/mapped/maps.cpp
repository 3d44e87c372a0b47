#include "path/mapped/maps.h"

#include "base/config.h"
#include "base/status.h"

namespace pw {
namespace {

// The pages of the region and not of its allocation: a small array out of a large pool must not fill BAR1.
Allocation span_of(const Region& region) {
  Allocation span = region.allocation();
  span.base = region.address();
  span.bytes = region.bytes();
  return span;
}

}  // namespace

void ProcessorMaps::find_mappers() {
  if (found_) return;
  found_ = true;
  if (auto gdrcopy = make_gdrcopy_mapper(config("gdrcopy_library"), why_no_gdrcopy_))
    mappers_.push_back(std::move(gdrcopy));
  mappers_.push_back(make_dmabuf_mapper());
}

CpuMapping* ProcessorMaps::find(Region& region, std::string& why_not) {
  Region::ProcessorMap& known = region.processor_map;
  if (CpuMapping* mapping = known.ready.load(std::memory_order_acquire)) return mapping;
  std::lock_guard lock(mutex_);
  if (known.mapping == nullptr && known.why_not.empty()) {
    find_mappers();
    try {
      known.mapping = map_for_processor(mappers_, why_no_gdrcopy_, region.device(), span_of(region));
      known.ready.store(known.mapping.get(), std::memory_order_release);
    } catch (const Error& error) {
      known.why_not = error.what();
      if (known.why_not.starts_with("peerway: ")) known.why_not.erase(0, 9);
    }
  }
  why_not = known.why_not;
  return known.mapping.get();
}

}  // namespace pw
