// The list of kinds of devices. It is a file of its own, so that another list can replace it.
#include "device/kinds.h"

#include "device/cuda/cuda.h"
#include "device/hip/hip.h"
#include "device/host/host.h"

namespace pw {

std::span<const DeviceKind> device_kinds() {
  static constexpr DeviceKind kinds[] = {
      {"host", find_host}, {"cuda", cuda::find_devices, cuda::names_on_host}, {"hip", hip::find_devices}};
  return kinds;
}

}  // namespace pw
