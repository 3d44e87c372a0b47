// Maps regions of GPU memory for the CPU. A mapping is made for the pages of one region when an offer or a
// transfer first needs it, and undone with the region. Memory that was freed and allocated again is
// another region (Registry::add compares the allocation's id), so a stale mapping is never found.
#pragma once

#include <mutex>
#include <string>

#include "memory/region.h"

namespace pw {

class CpuMaps {
 public:
  /// Returns the mapping of a region of device memory of this process; its address() is where the region
  /// begins. Returns null if the CPU cannot map it; `why_not` then has the reason and what to do. The region
  /// keeps the answer in both cases.
  CpuMapping* find(Region& region, std::string& why_not);

 private:
  std::mutex mutex_;
};

}  // namespace pw
