// NVML, the management library of the NVIDIA driver. It knows every GPU of the host that the process may
// open, including those that CUDA_VISIBLE_DEVICES hides from CUDA. It is loaded when the first hidden GPU is
// met, or CUDA_VISIBLE_DEVICES is set.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"
#include "device/cuda/peer_access.h"

namespace pw::settings {

extern const PathSetting nvml_library;

}  // namespace pw::settings

namespace pw::cuda {

/// Returns what NVML says about access between two different GPUs, if CUDA shows this process only the first.
/// `library` is the setting nvml_library.
PeerAccess access_to_hidden(const std::string& library, const Uuid& gpu, const Uuid& hidden);

/// Returns the names of all GPUs that this process may open, in NVML's order. Empty if NVML cannot be used,
/// or if a GPU has MIG slices.
std::vector<std::string> names_of_gpus(const std::string& library);

}  // namespace pw::cuda
