// Chooses the GPU that a rank uses if the program does not name one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pw {

/// Returns the ordinal of the GPU bound to a rank: the one that the setting `device` names, else the rank's
/// number among the ranks of its host, modulo the number of GPUs this process sees. Throws
/// Error(PW_BAD_CONFIG).
int32_t bound_gpu(int local_rank, size_t gpus);

}  // namespace pw
