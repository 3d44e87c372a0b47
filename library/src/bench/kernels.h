// The device code of the benchmarks (kernels.cu), compiled for a GPU when it is first needed.
#pragma once

#include <string>

namespace pw::bench {

/// Returns its text, which the build embeds.
const char* kernel_text();

/// Returns machine code or PTX for a GPU of that capability (90 for 9.0), from the cache of compiled kernels
/// or compiled by NVRTC. Throws Error.
std::string bench_kernels(int capability);

}  // namespace pw::bench
