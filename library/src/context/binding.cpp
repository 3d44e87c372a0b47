#include "context/binding.h"

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {

int32_t bound_gpu(int local_rank, size_t gpus) {
  if (config("device").empty())
    return gpus == 0 ? 0 : static_cast<int32_t>(static_cast<size_t>(local_rank) % gpus);
  const uint64_t named = config_number("device");
  if (named > INT32_MAX)
    throw Error(PW_BAD_CONFIG, format("{} is {}; this process sees {} GPUs, numbered from 0",
                                      config_origin("device"), named, gpus));
  return static_cast<int32_t>(named);
}

}  // namespace pw
