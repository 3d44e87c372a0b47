#include "bench/kernels.h"

#include <vector>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu_code.h"

namespace pw::bench {

std::string bench_kernels(const cuda::Driver& driver, int ordinal) {
  std::string why;
  const auto compiler = load_gpu_compiler(driver.vendor.kind, why);
  if (compiler == nullptr) throw Error(PW_UNAVAILABLE, why);
  std::vector<cuda::KernelSource> sources{{"bench.cu", kernel_text()}};
  const auto library = cuda::kernel_sources();  // this text includes its headers
  sources.insert(sources.end(), library.begin() + 1, library.end());
  const auto options = options_for_gpu(driver, *compiler, ordinal, "c++17");
  std::string key = format("benchmark kernels\n{} {}\n", compiler->name(), compiler->version());
  for (const std::string& option : options) key += option + "\n";
  for (const cuda::KernelSource& source : sources) key += format("{}\n{}", source.name, source.text);
  return cuda::cached_image(cuda::kernel_folder(), key, [&] { return compiler->compile(sources, options); });
}

}  // namespace pw::bench
