// Kernels of the generated code.
#pragma once

#include <string_view>
#include <vector>

#include "peerway/xacc/acc.h"

namespace pwx {

/// The text that stands before that of every kernel (the files of kernels/), embedded by the build.
std::string_view prelude();
/// The text before that of a kernel which exchanges values (kernels/exchange.cuh).
std::string_view exchange_text();

/// Makes all ready to be launched, before the program's first work on the GPU. One that does not compile is
/// told of when it is launched.
void load_kernels(const std::vector<pwx_kernel*>& all);

/// Before the context ends.
void free_kernels();

}  // namespace pwx
