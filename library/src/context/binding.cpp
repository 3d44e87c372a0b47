#include "context/binding.h"

#include <cstdlib>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {

int32_t bound_gpu(int local_rank, size_t gpus) {
  if (config("device").empty())
    return gpus == 0 ? 0 : static_cast<int32_t>(static_cast<size_t>(local_rank) % gpus);
  const uint64_t named = config_number("device");
  if (named > INT32_MAX || (gpus > 0 && named >= gpus)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw Error(
        PW_BAD_CONFIG,
        format("{} is {}, but this process sees {} GPU{}, numbered from 0{}; take away the one or the other",
               config_origin("device"), named, gpus, gpus == 1 ? "" : "s",
               visible == nullptr ? std::string() : format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible)));
  }
  return static_cast<int32_t>(named);
}

}  // namespace pw
