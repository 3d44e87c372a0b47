// The HIP devices of this node, for library/src/device/kinds.cpp. They never ran on an AMD GPU
// (docs/library/amd.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting.h"
#include "device/cuda/nvrtc.h"
#include "device/device.h"
#include "device/hip/hip_driver.h"

namespace pw::settings {

extern const PathSetting hiprtc_library;

}  // namespace pw::settings

namespace pw::hip {

/// Returns one device for each AMD GPU that this process may use. Uses the settings `hip_library`,
/// `hiprtc_library` and `cache` (of compiled kernels). If there is none, returns an empty list, with the
/// reason in `why_none`.
std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none);

/// Loads HIPRTC: `library`, or if that is empty, the system's. Returns null if there is none, with the reason
/// and the remedy in `why`.
std::unique_ptr<cuda::Nvrtc> load_compiler(const std::string& library, std::string& why);

/// Returns HIPRTC's options for code of that GPU, in that version of C++.
std::vector<std::string> compiler_options(const GpuFacts& facts, std::string_view standard);

}  // namespace pw::hip
