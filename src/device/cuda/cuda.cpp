#include "device/cuda/cuda.h"

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/cuda_device.h"

namespace pw::cuda {

std::vector<std::unique_ptr<Device>> make_devices(const Options& options, std::string& why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  // Kept to the end of the process, as the driver itself is: objects that outlive main() may still let memory
  // go.
  const Driver* driver = Driver::load(options.driver_library, why_none).release();
  if (driver == nullptr) return devices;
  auto* pins = new Pins(*driver);
  const auto image = [options](int capability) {
    return kernel_image(capability, options.nvrtc_library, options.cache_folder);
  };
  int count = 0;
  driver->cuDeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal)
    devices.push_back(std::make_unique<CudaDevice>(*driver, ordinal, *pins, image));
  if (devices.empty())
    why_none = "the NVIDIA driver is here but shows no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi";
  return devices;
}

}  // namespace pw::cuda
