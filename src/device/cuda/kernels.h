// The copy kernels of kernels/copy.cu, loaded into one GPU's context.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "device/cuda/driver.h"
#include "device/cuda/launch.h"

namespace pw::cuda {

class Kernels {
 public:
  /// `image` is machine code or PTX. The context must be current. Throws Error.
  Kernels(const Driver& driver, const std::string& image);

  [[nodiscard]] CUresult launch(const Launch& launch, CUstream stream) const;

 private:
  const Driver& driver_;
  CUmodule module_ = nullptr;             ///< lives as long as the context
  std::array<CUfunction, 5> function_{};  ///< by the logarithm of the word's bytes
};

/// Machine code for a GPU of that capability, from the cache in `folder` or compiled by NVRTC. Throws Error.
std::string kernel_image(int capability, const std::string& nvrtc_setting, const std::string& folder);

}  // namespace pw::cuda
