// Collective gmoves between copies on GPUs.
#pragma once

namespace pwx {

/// Call it before the context ends.
void free_gmove_plans();

}  // namespace pwx
