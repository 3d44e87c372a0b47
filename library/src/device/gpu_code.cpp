#include "device/gpu_code.h"

#include "device/hip/hip.h"
#include "device/hip/hip_driver.h"

namespace pw {

std::unique_ptr<const cuda::Driver> load_gpu_driver(pw_device_kind kind, std::string& why) {
  return kind == PW_HIP ? hip::load_driver(settings::hip_library.text(), why)
                        : cuda::Driver::load(settings::cuda_library.text(), why);
}

std::unique_ptr<cuda::Nvrtc> load_gpu_compiler(pw_device_kind kind, std::string& why) {
  return kind == PW_HIP ? hip::load_compiler(settings::hiprtc_library.text(), why)
                        : cuda::Nvrtc::load(cuda::nvrtc_candidates(settings::nvrtc_library.text()), why);
}

std::vector<std::string> options_for_gpu(const cuda::Driver& driver, const cuda::Nvrtc& compiler, int ordinal,
                                         std::string_view standard) {
  if (driver.vendor.kind == PW_HIP) return hip::compiler_options(hip::facts_of(ordinal), standard);
  const auto attribute = [&](int which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, ordinal) == cuda::CUDA_SUCCESS ? value : 0;
  };
  const int capability = 10 * attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return compiler.options(capability, standard);
}

}  // namespace pw
