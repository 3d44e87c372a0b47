// Kernels of the generated code.
#pragma once

#include "device/cuda/nvrtc.h"

namespace pwx {

/// The text that stands before that of every kernel (kernels/prelude.cuh), embedded by the build.
pw::cuda::KernelSource prelude();

/// Before the context ends.
void free_kernels();

}  // namespace pwx
