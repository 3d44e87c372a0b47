// NVML, the management library of the NVIDIA driver: it knows every GPU of the host that the process may
// open, also those that CUDA_VISIBLE_DEVICES hides from CUDA. Loaded when the first hidden GPU is met.
#pragma once

#include <string>

#include "device/cuda/peer_access.h"

namespace pw::cuda {

/// What NVML says of two different GPUs of which CUDA shows this process the first alone. `library` is the
/// setting nvml_library.
PeerAccess access_to_hidden(const std::string& library, const Uuid& gpu, const Uuid& hidden);

}  // namespace pw::cuda
