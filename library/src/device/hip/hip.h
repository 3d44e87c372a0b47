// The HIP devices of this node, for library/src/device/kinds.cpp. They never ran on an AMD GPU
// (docs/library/amd.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace pw::hip {

/// Returns one device for each AMD GPU that this process may use. Uses the settings `hip_library`,
/// `hiprtc_library` and `cache` (of compiled kernels). If there is none, returns an empty list, with the
/// reason in `why_none`.
std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none);

}  // namespace pw::hip
