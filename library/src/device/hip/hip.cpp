#include "device/hip/hip.h"

#include "base/format.h"
#include "base/setting.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/kernels.h"
#include "device/cuda/nvrtc.h"
#include "device/hip/hip_device.h"

namespace pw::settings {

const PathSetting hiprtc_library{"hiprtc_library", "",
                                 "The HIPRTC library. Empty: libhiprtc.so of the system or of /opt/rocm."};

}  // namespace pw::settings

namespace pw::hip {
namespace {

std::vector<std::string> hiprtc_candidates(const std::string& setting) {
  if (!setting.empty()) return {setting};
  return {"libhiprtc.so.7", "libhiprtc.so.6", "/opt/rocm/lib/libhiprtc.so"};
}

// Makes device code for a GPU, whose architecture HIP names in full: "gfx90a:sramecc+:xnack-".
std::string image_for(const GpuFacts& facts, const std::optional<cuda::ReduceKernel>& reduction,
                      const std::string& hiprtc_setting, const std::string& folder) {
  std::string why;
  const auto candidates = hiprtc_candidates(hiprtc_setting);
  const auto hiprtc = cuda::Nvrtc::load(candidates, why, cuda::Nvrtc::Kind::hiprtc);
  if (hiprtc == nullptr) throw Error(PW_UNAVAILABLE, "" + why);
  std::vector<std::string> options = {"--offload-arch=" + facts.arch, "-std=c++17", "-O3"};
  if (facts.clock_khz > 0) options.push_back(format("-DPEERWAY_CLOCK_KHZ={}", facts.clock_khz));
  return cuda::compiled_kernels(*hiprtc, "hiprtc", std::move(options), reduction, folder);
}

}  // namespace

std::vector<std::unique_ptr<Device>> find_devices(std::string& why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  // Kept to the end of the process, like the library itself.
  const cuda::Driver* driver = load_driver(settings::hip_library.text(), why_none).release();
  if (driver == nullptr) return devices;
  auto* pins = new cuda::Pins(*driver);
  int count = 0;
  driver->cuDeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const GpuFacts facts = facts_of(ordinal);
    const auto image = [facts, hiprtc = settings::hiprtc_library.text(), folder = cuda::kernel_folder()](
                           int, const std::optional<cuda::ReduceKernel>& reduction) {
      return image_for(facts, reduction, hiprtc, folder);
    };
    devices.push_back(std::make_unique<HipDevice>(*driver, ordinal, *pins, image, facts));
  }
  if (devices.empty()) why_none = "HIP is here but shows no GPU; check rocminfo and HIP_VISIBLE_DEVICES";
  return devices;
}

}  // namespace pw::hip
