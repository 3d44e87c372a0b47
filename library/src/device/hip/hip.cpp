#include "device/hip/hip.h"

#include "base/format.h"
#include "base/setting.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/kernels.h"
#include "device/hip/hip_device.h"

namespace pw::settings {

const PathSetting hiprtc_library{"hiprtc_library", "",
                                 "The HIPRTC library. Empty: libhiprtc.so of the system or of /opt/rocm."};

}  // namespace pw::settings

namespace pw::hip {

std::unique_ptr<cuda::Nvrtc> load_compiler(const std::string& library, std::string& why) {
  std::vector<std::string> candidates = {"libhiprtc.so.7", "libhiprtc.so.6", "/opt/rocm/lib/libhiprtc.so"};
  if (!library.empty()) candidates = {library};
  return cuda::Nvrtc::load(candidates, why, cuda::Nvrtc::Kind::hiprtc);
}

std::vector<std::string> compiler_options(const GpuFacts& facts, std::string_view standard) {
  // HIP names an architecture in full: "gfx90a:sramecc+:xnack-".
  std::vector<std::string> options = {"--offload-arch=" + facts.arch, format("-std={}", standard), "-O3"};
  if (facts.clock_khz > 0) options.push_back(format("-DPEERWAY_CLOCK_KHZ={}", facts.clock_khz));
  return options;
}

namespace {

std::string image_for(const GpuFacts& facts, const std::optional<cuda::ReduceKernel>& reduction,
                      const std::string& hiprtc_setting, const std::string& folder) {
  std::string why;
  const auto hiprtc = load_compiler(hiprtc_setting, why);
  if (hiprtc == nullptr) throw Error(PW_UNAVAILABLE, why);
  return cuda::compiled_kernels(*hiprtc, compiler_options(facts, "c++17"), reduction, folder);
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
  if (devices.empty()) why_none = format("HIP is here but shows no GPU; {}", driver->vendor.why_no_gpu);
  return devices;
}

}  // namespace pw::hip
