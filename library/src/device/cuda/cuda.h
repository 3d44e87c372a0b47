// The CUDA devices of this node, for library/src/device/kinds.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace pw::cuda {

/// One device for each GPU that this process may see, by the settings `cuda_library` (the driver),
/// `nvrtc_library` and `cache` (of compiled kernels). Empty when there is none, with the reason in
/// `why_none`.
std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none);

}  // namespace pw::cuda
