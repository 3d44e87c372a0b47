// The device code of the benchmarks (kernels.cu), compiled for a GPU when it is first needed.
#pragma once

#include <string>

#include "device/cuda/driver.h"

namespace pw::bench {

/// Returns its text, which the build embeds.
const char* kernel_text();

/// Returns machine code or PTX for this GPU of the driver, from the cache of compiled kernels or compiled.
/// Throws Error.
std::string bench_kernels(const cuda::Driver& driver, int ordinal);

}  // namespace pw::bench
