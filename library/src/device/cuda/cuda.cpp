#include "device/cuda/cuda.h"

#include "base/config.h"
#include "base/status.h"
#include "device/cuda/cuda_device.h"

namespace pw::cuda {

std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  // Kept to the end of the process, like the driver itself, because objects that outlive main() may still
  // free memory.
  const Driver* driver = Driver::load(config("cuda_library"), why_none).release();
  if (driver == nullptr) return devices;
  auto* pins = new Pins(*driver);
  const std::string cache = config("cache");
  const auto image = [nvrtc = config("nvrtc_library"),
                      kernels = (cache.empty() ? cache_home() : cache) + "/kernels"](int capability) {
    return kernel_image(capability, nvrtc, kernels);
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
