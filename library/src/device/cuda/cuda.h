// The CUDA devices of this node, for library/src/device/kinds.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace pw::cuda {

/// Returns one device for each GPU that this process may use. Uses the settings `cuda_library` (the driver),
/// `nvrtc_library` and `cache` (of compiled kernels). If there is none, returns an empty list, with the
/// reason in `why_none`.
std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none);

}  // namespace pw::cuda
