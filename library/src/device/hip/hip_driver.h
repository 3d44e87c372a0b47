// HIP, loaded at run time, behind the interface of CUDA's driver (../cuda/driver.h): the classes of the CUDA
// device then run AMD GPUs, too. Most functions of HIP have the parameters of CUDA's; hip_driver.cpp
// translates the others. Functions that HIP has no counterpart of, and those for VMM and pools, are null: a
// HIP device says of itself that it has neither.
#pragma once

#include <memory>
#include <string>

#include "base/setting.h"
#include "device/cuda/driver.h"
#include "device/hip/hip_abi.h"

namespace pw::settings {

extern const PathSetting hip_library;

}  // namespace pw::settings

namespace pw::hip {

/// The oldest ROCm that is supported, as hipRuntimeGetVersion gives it: 6.0. Before it, kinds of memory and
/// attributes of devices had other numbers.
inline constexpr int kOldestHip = 60000000;

/// Loads `library` (empty: libamdhip64.so of the system or of /opt/rocm). Returns null if it cannot be used,
/// with the reason and the remedy in `why`. A process loads one library.
std::unique_ptr<const cuda::Driver> load_driver(const std::string& library, std::string& why);

/// "6.3", of 60342134
std::string version_text(int version);

/// Facts of a GPU for which CUDA has no function.
struct GpuFacts {
  std::string arch;                         ///< "gfx90a:sramecc+:xnack-"
  bool large_bar = false;                   ///< the CPU reaches all of its memory, at the same addresses
  volatile uint32_t* flush_word = nullptr;  ///< storing 1 here makes the CPU's stores visible to the GPU
  int clock_khz = 0;                        ///< of the clock that kernels read
};
GpuFacts facts_of(int ordinal);

}  // namespace pw::hip
