#include "device/cuda/mapper.h"

#include "base/format.h"
#include "base/status.h"

namespace pw::cuda {

std::unique_ptr<CpuMapping> map_for_cpu(const std::vector<std::unique_ptr<CpuMapper>>& mappers,
                                        const std::string& before, Device& device,
                                        const Allocation& allocation) {
  std::string last, earlier = before;
  for (const auto& mapper : mappers) {
    try {
      return mapper->map(device, allocation);
    } catch (const Error& error) {
      if (!last.empty()) earlier += format("{}{}", earlier.empty() ? "" : "; ", last);
      last = error.what();
    }
  }
  // The last way needs the least from the system, so its reason is the best advice.
  throw Error(PW_UNAVAILABLE, format("{} ({}{}{})", last, to_string(device.id()),
                                     earlier.empty() ? "" : "; before that: ", earlier));
}

}  // namespace pw::cuda
