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

/// Returns the names of all GPUs that NVML shows, if CUDA_VISIBLE_DEVICES may hide some from CUDA. Empty if
/// it is not set, where NVML cannot be used, and where a GPU has MIG slices, which CUDA shows in its place.
std::vector<std::string> names_on_host();

}  // namespace pw::cuda
