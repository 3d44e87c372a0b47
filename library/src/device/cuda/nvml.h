// NVML, the management library of the NVIDIA driver. It knows every GPU of the host that the process may
// open, including those that CUDA_VISIBLE_DEVICES hides from CUDA. It is loaded when the first hidden GPU is
// met.
#pragma once

#include <string>

#include "device/cuda/peer_access.h"

namespace pw::cuda {

/// Returns what NVML says about access between two different GPUs, if CUDA shows this process only the first.
/// `library` is the setting nvml_library.
PeerAccess access_to_hidden(const std::string& library, const Uuid& gpu, const Uuid& hidden);

}  // namespace pw::cuda
