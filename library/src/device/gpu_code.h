// The driver and the run-time compiler of each kind of GPU, for kernels that are no part of a device: those
// of the benchmarks, and of programs of `peerway cc`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"

namespace pw {

/// The kinds of GPUs, in the order in which programs that name none look for one.
inline constexpr pw_device_kind kGpuKinds[] = {PW_CUDA, PW_HIP};

/// Loads the driver of this kind of GPU, with CUDA's interface, by the settings `cuda_library` and
/// `hip_library`. Returns null if it cannot be used, with the reason and the remedy in `why`.
std::unique_ptr<const cuda::Driver> load_gpu_driver(pw_device_kind kind, std::string& why);

/// Loads the compiler for this kind of GPU, by the settings `nvrtc_library` and `hiprtc_library`. Returns
/// null if there is none, with the reason and the remedy in `why`.
std::unique_ptr<cuda::Nvrtc> load_gpu_compiler(pw_device_kind kind, std::string& why);

/// Returns the compiler's options for code of that GPU, in that version of C++ ("c++20"). Throws Error if it
/// does not know the GPU.
std::vector<std::string> options_for_gpu(const cuda::Driver& driver, const cuda::Nvrtc& compiler, int ordinal,
                                         std::string_view standard);

}  // namespace pw
