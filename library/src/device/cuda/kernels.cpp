#include "device/cuda/kernels.h"

#include <bit>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::cuda {

Kernels::Kernels(const Driver& driver, int capability, MakeImage make_image)
    : driver_(driver), capability_(capability), make_image_(std::move(make_image)) {
  const CUmodule module = load(make_image_(capability, std::nullopt));
  for (unsigned i = 0; i < function_.size(); ++i) function_[i] = find(module, format("pw_copy_{}", 1u << i));
  unsigned next = 0;
  for (const char* name :
       {"few_steps", "some_steps", "many_steps", "few_packets", "some_packets", "few_lines", "some_lines"})
    plan_[next++] = find(module, format("pw_plan_{}", name));
  clock_ = find(module, "pw_plan_clock");
}

CUmodule Kernels::load(const std::string& image) const {
  CUmodule module = nullptr;
  driver_.check(driver_.cuModuleLoadData(&module, image.data()), "loading the kernels");
  return module;
}

CUfunction Kernels::find(CUmodule module, const std::string& name) const {
  CUfunction function = nullptr;
  driver_.check(driver_.cuModuleGetFunction(&function, module, name.c_str()), "finding the kernel " + name);
  return function;
}

CUfunction Kernels::reduction(ReduceKernel which) const {
  std::lock_guard lock(mutex_);
  CUfunction& function = reductions_[which];
  if (function == nullptr) function = find(load(make_image_(capability_, which)), "pw_reduce");
  return function;
}

CUresult Kernels::launch(const CopyLaunch& launch, CUstream stream) const {
  auto arguments = launch.arguments;
  void* parameters[] = {&arguments};
  return driver_.cuLaunchKernel(function_[static_cast<size_t>(std::countr_zero(launch.word_bytes))],
                                launch.blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
}

CUresult Kernels::launch(const PlanLaunch& plan, CUstream stream) const {
  return launch(plan_[static_cast<size_t>(plan.kernel)], plan.blocks, plan.threads,
                const_cast<PlanHead*>(&plan.head), true, stream);  // the driver only reads it
}

CUresult Kernels::launch(const ReduceLaunch& reduce, CUstream stream) const {
  return launch(reduce.function, reduce.blocks, kReduceThreads,
                const_cast<ReduceArguments*>(&reduce.arguments), reduce.early, stream);
}

CUresult Kernels::launch(CUfunction function, unsigned blocks, unsigned threads, void* arguments, bool early,
                         CUstream stream) const {
  void* parameters[] = {arguments};
  CUlaunchAttribute serialization{};  // GPUs that do not support it launch as usual
  serialization.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  serialization.value[0] = 1;
  const CUlaunchConfig config{blocks, 1, 1, threads, 1, 1, 0, stream, &serialization, early ? 1u : 0u};
  return driver_.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

CUresult Kernels::launch_clock(CUdeviceptr words, unsigned rounds, CUstream stream) const {
  void* parameters[] = {&words, &rounds};
  return driver_.cuLaunchKernel(clock_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

std::string kernel_image(int capability, const std::optional<ReduceKernel>& reduction,
                         const std::string& nvrtc_setting, const std::string& folder) {
  std::string why;
  const auto nvrtc = Nvrtc::load(nvrtc_candidates(nvrtc_setting), why);
  if (nvrtc == nullptr) throw Error(PW_UNAVAILABLE, "" + why);
  return compiled_kernels(*nvrtc, nvrtc->options(capability), reduction, folder);
}

std::string compiled_kernels(const Nvrtc& compiler, std::vector<std::string> options,
                             const std::optional<ReduceKernel>& reduction, const std::string& folder) {
  std::vector<KernelSource> sources(kernel_sources().begin(), kernel_sources().end());
  if (reduction) {
    sources.front().text = "#include \"reduce.cu\"\n";
    options.push_back(format("-DPW_ELEMENT={}", static_cast<unsigned>(reduction->element)));
    options.push_back(format("-DPW_COMBINE={}", static_cast<unsigned>(reduction->combine)));
  }
  std::string key = format("peerway kernels\n{} {}\n", compiler.name(), compiler.version());
  for (const std::string& option : options) key += option + "\n";
  for (const KernelSource& source : sources) key += format("{}\n{}", source.name, source.text);
  return cached_image(folder, key, [&] { return compiler.compile(sources, options); });
}

}  // namespace pw::cuda
