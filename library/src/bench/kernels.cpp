#include "bench/kernels.h"

#include <vector>

#include "base/format.h"
#include "base/status.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"

namespace pw::bench {

std::string bench_kernels(int capability) {
  std::string why;
  const auto nvrtc = cuda::Nvrtc::load(cuda::nvrtc_candidates(settings::nvrtc_library.text()), why);
  if (nvrtc == nullptr) throw Error(PW_UNAVAILABLE, why);
  std::vector<cuda::KernelSource> sources{{"bench.cu", kernel_text()}};
  const auto library = cuda::kernel_sources();  // this text includes its headers
  sources.insert(sources.end(), library.begin() + 1, library.end());
  const auto options = nvrtc->options(capability);
  std::string key = format("benchmark kernels\nnvrtc {}\n", nvrtc->version());
  for (const std::string& option : options) key += option + "\n";
  for (const cuda::KernelSource& source : sources) key += format("{}\n{}", source.name, source.text);
  return cuda::cached_image(cuda::kernel_folder(), key, [&] { return nvrtc->compile(sources, options); });
}

}  // namespace pw::bench
