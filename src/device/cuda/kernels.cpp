#include "device/cuda/kernels.h"

#include <bit>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {

Kernels::Kernels(const Driver& driver, const std::string& image) : driver_(driver) {
  driver.check(driver.cuModuleLoadData(&module_, image.data()), "loading the copy kernels");
  for (unsigned i = 0; i < function_.size(); ++i) {
    const std::string name = format("pw_copy_{}", 1u << i);
    driver.check(driver.cuModuleGetFunction(&function_[i], module_, name.c_str()),
                 "finding the copy kernel " + name);
  }
}

CUresult Kernels::launch(const Launch& launch, CUstream stream) const {
  auto arguments = launch.arguments;
  void* parameters[] = {&arguments};
  return driver_.cuLaunchKernel(function_[static_cast<size_t>(std::countr_zero(launch.word_bytes))],
                                launch.blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
}

std::string kernel_image(int capability, const std::string& nvrtc_setting, const std::string& folder) {
  std::string why;
  const auto nvrtc = Nvrtc::load(nvrtc_candidates(nvrtc_setting), why);
  if (nvrtc == nullptr) throw Error(PW_UNAVAILABLE, "peerway: " + why);
  const auto options = nvrtc->options(capability);
  std::string key = format("peerway kernels\nnvrtc {}\n", nvrtc->version());
  for (const std::string& option : options) key += option + "\n";
  for (const Source& source : kernel_sources()) key += format("{}\n{}", source.name, source.text);
  return cached_image(folder, key, [&] { return nvrtc->compile(kernel_sources(), options); });
}

}  // namespace pw::cuda
