#include "bench/kernels.h"

#include <vector>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::bench {

std::string bench_kernels(int capability) {
  std::string why;
  const auto nvrtc = cuda::Nvrtc::load(cuda::nvrtc_candidates(config("nvrtc_library")), why);
  if (nvrtc == nullptr) throw Error(PW_UNAVAILABLE, "" + why);
  std::vector<cuda::KernelSource> sources{{"bench.cu", kernel_text()}};
  const auto library = cuda::kernel_sources();  // this text includes its headers
  sources.insert(sources.end(), library.begin() + 1, library.end());
  const auto options = nvrtc->options(capability);
  std::string key = format("benchmark kernels\nnvrtc {}\n", nvrtc->version());
  for (const std::string& option : options) key += option + "\n";
  for (const cuda::KernelSource& source : sources) key += format("{}\n{}", source.name, source.text);
  const std::string home = config("cache");
  const std::string folder = (home.empty() ? cache_home() : home) + "/kernels";
  return cuda::cached_image(folder, key, [&] { return nvrtc->compile(sources, options); });
}

}  // namespace pw::bench
