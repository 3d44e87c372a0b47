// Regions of GPU memory as the CPU sees them. A mapping is made for the pages of one region when a
// probe or a transfer first asks for it, and undone with the region; memory that was freed and reused is
// another region (Registry::add compares the allocation's id), so an old mapping is never found again.
#pragma once

#include <mutex>
#include <string>

#include "memory/region.h"

namespace pw {

class CpuMaps {
 public:
  /// The mapping of a region of device memory of this process; its address() is where the region begins. Null
  /// when the CPU cannot map it, with the reason and what to do in `why_not`. The region keeps both
  /// answers.
  CpuMapping* find(Region& region, std::string& why_not);

 private:
  std::mutex mutex_;
};

}  // namespace pw
