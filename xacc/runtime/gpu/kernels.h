// The kernels of the generated code.
#pragma once

#include <string_view>
#include <vector>

#include "peerway/peerway.hpp"
#include "peerway/xacc/acc.h"

namespace pwx {

/// The text that precedes every kernel (the files of kernels/), which the build embeds.
std::string_view prelude();
/// The text that precedes a kernel that reduces values of several ranks (kernels/rank_reduction.cuh).
std::string_view rank_reduction_text();

/// Compiles and loads kernels before the program's first work on the GPU. If one does not compile, its launch
/// reports the error.
void load_kernels(std::vector<pwx_kernel*> all);
/// Has load_kernels load this kernel, too, which the program will need.
void preload(pwx_kernel& kernel);

/// Launches a kernel that reduces values of several ranks by the lanes of a plan, whose guard ends its waits.
void launch_rank_reduction(pwx_kernel& kernel, const pwx_shape& shape, void** arguments,
                           size_t argument_count, peerway::Plan& plan);

/// Call it before the context ends.
void free_kernels();

}  // namespace pwx
