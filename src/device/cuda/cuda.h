// The CUDA devices of this node, for src/device/devices.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace pw::cuda {

struct Options {
  std::string driver_library;  ///< empty: libcuda.so.1
  std::string nvrtc_library;   ///< empty: searched for
  std::string cache_folder;    ///< of compiled kernels
};

/// One device for each GPU that this process may see. Empty when there is none, with the reason in
/// `why_none`.
std::vector<std::unique_ptr<Device>> make_devices(const Options& options, std::string& why_none);

}  // namespace pw::cuda
