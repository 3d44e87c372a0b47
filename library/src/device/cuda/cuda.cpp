#include "device/cuda/cuda.h"

#include <cstdlib>

#include "base/status.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvml.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {

std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  // Kept to the end of the process, like the driver itself, because objects that outlive main() may still
  // free memory.
  const Driver* driver = Driver::load(settings::cuda_library.text(), why_none).release();
  if (driver == nullptr) return devices;
  auto* pins = new Pins(*driver);
  const auto image = [nvrtc = settings::nvrtc_library.text(), folder = kernel_folder()](
                         int capability, const std::optional<ReduceKernel>& reduction) {
    return kernel_image(capability, reduction, nvrtc, folder);
  };
  int count = 0;
  driver->cuDeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal)
    devices.push_back(std::make_unique<CudaDevice>(*driver, ordinal, *pins, image));
  if (devices.empty())
    why_none = "the NVIDIA driver is here but shows no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi";
  return devices;
}

std::vector<std::string> names_on_host() {
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) return {};
  return names_of_gpus(settings::nvml_library.text());
}

}  // namespace pw::cuda
