// Libraries that were built beside the unit tests, found from where this program lies.
#pragma once

#include <filesystem>
#include <string>

namespace pw {

inline std::string built(const char* below_this_folder) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / below_this_folder).string();
}

inline const std::string kFakeCuda = built("libfake_cuda.so");
inline const std::string kFakeHip = built("libfake_hip.so");
inline const std::string kFakeNvml = built("libfake_nvml.so");
inline const std::string kFakeGdrcopy = built("libfake_gdrcopy.so");
inline const std::string kTorusPlugin = built("../../nic/torus/libpeerway_nic_torus.so");

}  // namespace pw
