#include "context/binding.h"

#include <cstdlib>

#include "base/format.h"
#include "base/setting.h"
#include "base/status.h"

namespace pw {
namespace settings {

const CountSetting device{
    "device", "",
    "The CUDA device of this rank. Empty: the rank's index on its host, modulo the number of devices."};

}  // namespace settings

int32_t bound_gpu(int local_rank, size_t gpus) {
  const std::optional<uint64_t> named = settings::device.count();
  if (!named) return gpus == 0 ? 0 : static_cast<int32_t>(static_cast<size_t>(local_rank) % gpus);
  if (*named > INT32_MAX || (gpus > 0 && *named >= gpus)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw Error(
        PW_BAD_CONFIG,
        format("{} is {}, but this process sees {} GPU{}, numbered from 0{}; take away the one or the other",
               settings::device.origin(), *named, gpus, gpus == 1 ? "" : "s",
               visible == nullptr ? std::string() : format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible)));
  }
  return static_cast<int32_t>(*named);
}

}  // namespace pw
