// The list of kinds of device. It is compiled alone, so that another list can take its place.
#include "device/kinds.h"

#include "device/cuda/cuda.h"
#include "device/host/host.h"

namespace pw {

std::span<const DeviceKind> device_kinds() {
  static constexpr DeviceKind kinds[] = {{"host", find_host},
                                         {"cuda", cuda::find_devices, "CUDA_VISIBLE_DEVICES"}};
  return kinds;
}

}  // namespace pw
