// A HIP device: the CUDA device with a driver that calls HIP, except that the CPU reaches the GPU's memory
// without a mapping.
#pragma once

#include <memory>

#include "device/cuda/cuda_device.h"
#include "device/hip/hip_driver.h"

namespace pw::hip {

class HipDevice final : public cuda::CudaDevice {
 public:
  HipDevice(const cuda::Driver& driver, int ordinal, cuda::Pins& pins, cuda::MakeImage make_image,
            GpuFacts facts)
      : CudaDevice(driver, ordinal, pins, std::move(make_image)), facts_(std::move(facts)) {}

  /// Where the GPU has a large BAR, the CPU loads and stores at the address that the GPU uses.
  std::unique_ptr<CpuMapping> map_for_cpu(const Allocation& allocation) override;

 private:
  GpuFacts facts_;
};

}  // namespace pw::hip
