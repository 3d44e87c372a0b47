// GPU memory as source and target of packets. The process that registered it copies it through the CUDA
// driver, if there is one.
#pragma once

#include <cstdint>

#include "peerway/nic.h"

namespace pw::torus {

/// Whether a CUDA driver with a GPU is there.
bool gpu_available();

/// Copies by a stream of the GPU's own, which waits for no kernel; one side is memory of GPU `device`.
/// Returns once the bytes are there. False when the driver fails.
bool gpu_copy(void* to, const void* from, uint64_t bytes, int device);

}  // namespace pw::torus
