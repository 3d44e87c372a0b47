// Regions of GPU memory as the processor sees them. A mapping is made for the pages of one region when a
// probe or a transfer first asks for it, and undone with the region; memory that was freed and reused is
// another region (Registry::add compares the allocation's id), so an old mapping is never found again.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/region.h"
#include "path/mapped/mapper.h"

namespace pw {

class ProcessorMaps {
 public:
  /// The mapping of a region of device memory of this process; its address() is where the region begins. Null
  /// when the processor cannot map it, with the reason and what to do in `why_not`. The region keeps both
  /// answers.
  CpuMapping* find(Region& region, std::string& why_not);

 private:
  void find_mappers();

  std::mutex mutex_;
  bool found_ = false;
  std::vector<std::unique_ptr<CpuMapper>> mappers_;
  std::string why_no_gdrcopy_;
};

}  // namespace pw
