// The device code of the benchmarks (kernels.cu), compiled for a GPU when it is first needed.
#pragma once

#include <string>

namespace pw::bench {

/// Its text, embedded by the build.
const char* kernel_text();

/// Machine code or PTX for a GPU of that capability (90 for 9.0), from the cache of compiled kernels or by
/// NVRTC. Throws Error.
std::string bench_kernels(int capability);

}  // namespace pw::bench
