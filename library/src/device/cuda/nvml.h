// NVML, the management library of the NVIDIA driver: it knows every GPU of the host that the process may
// open, also those that CUDA_VISIBLE_DEVICES hides from CUDA. Loaded when the first hidden GPU is met.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace pw::cuda {

using Uuid = std::array<std::byte, 16>;

/// "GPU-5b2f…", as nvidia-smi writes it.
std::string uuid_text(const Uuid& uuid);

/// Whether one GPU may read and write the memory of another one, and over what.
struct PeerAccess {
  bool reachable = false;
  std::string link;     ///< "nvlink" or "pcie"; empty where not reachable
  std::string why_not;  ///< and what to do
};

/// What NVML says of two different GPUs of which CUDA shows this process the first alone. `library` is the
/// setting nvml_library. Answers are kept to the end of the process.
const PeerAccess& access_to_hidden(const std::string& library, const Uuid& gpu, const Uuid& hidden);

}  // namespace pw::cuda
