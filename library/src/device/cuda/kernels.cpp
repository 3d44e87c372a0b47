#include "device/cuda/kernels.h"

#include <bit>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {

Kernels::Kernels(const Driver& driver, const std::string& image) : driver_(driver) {
  driver.check(driver.cuModuleLoadData(&module_, image.data()), "loading the kernels");
  const auto find = [&](CUfunction& function, const std::string& name) {
    driver.check(driver.cuModuleGetFunction(&function, module_, name.c_str()), "finding the kernel " + name);
  };
  for (unsigned i = 0; i < function_.size(); ++i) find(function_[i], format("pw_copy_{}", 1u << i));
  unsigned next = 0;
  for (const char* name :
       {"few_steps", "some_steps", "many_steps", "few_packets", "some_packets", "few_lines", "some_lines"})
    find(plan_[next++], format("pw_plan_{}", name));
  find(clock_, "pw_plan_clock");
  find(reduce_, "pw_reduce");
}

CUresult Kernels::launch(const CopyLaunch& launch, CUstream stream) const {
  auto arguments = launch.arguments;
  void* parameters[] = {&arguments};
  return driver_.cuLaunchKernel(function_[static_cast<size_t>(std::countr_zero(launch.word_bytes))],
                                launch.blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
}

CUresult Kernels::launch(const PlanLaunch& plan, CUstream stream) const {
  return launch_early(plan_[static_cast<size_t>(plan.kernel)], plan.blocks, plan.threads,
                      const_cast<PlanHead*>(&plan.head), stream);  // the driver only reads it
}

CUresult Kernels::launch(const ReduceLaunch& launch, CUstream stream) const {
  return launch_early(reduce_, launch.blocks, kReduceThreads, const_cast<ReduceArguments*>(&launch.arguments),
                      stream);
}

CUresult Kernels::launch_early(CUfunction function, unsigned blocks, unsigned threads, void* arguments,
                               CUstream stream) const {
  void* parameters[] = {arguments};
  CUlaunchAttribute early{};  // GPUs that do not support it launch as usual
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value[0] = 1;
  const CUlaunchConfig config{blocks, 1, 1, threads, 1, 1, 0, stream, &early, 1};
  return driver_.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

CUresult Kernels::launch_clock(CUdeviceptr words, unsigned rounds, CUstream stream) const {
  void* parameters[] = {&words, &rounds};
  return driver_.cuLaunchKernel(clock_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

std::string kernel_image(int capability, const std::string& nvrtc_setting, const std::string& folder) {
  std::string why;
  const auto nvrtc = Nvrtc::load(nvrtc_candidates(nvrtc_setting), why);
  if (nvrtc == nullptr) throw Error(PW_UNAVAILABLE, "" + why);
  return compiled_kernels(*nvrtc, "nvrtc", nvrtc->options(capability), folder);
}

std::string compiled_kernels(const Nvrtc& compiler, std::string_view name,
                             const std::vector<std::string>& options, const std::string& folder) {
  std::string key = format("peerway kernels\n{} {}\n", name, compiler.version());
  for (const std::string& option : options) key += option + "\n";
  for (const KernelSource& source : kernel_sources()) key += format("{}\n{}", source.name, source.text);
  return cached_image(folder, key, [&] { return compiler.compile(kernel_sources(), options); });
}

}  // namespace pw::cuda
