// GPU memory as source and target of packets. The process that registered it copies it through the CUDA
// driver, if there is one.
#pragma once

#include <cstdint>

#include "peerway/nic.h"

namespace pw::torus {

/// Whether there is a CUDA driver with a GPU.
bool gpu_available();

/// Copies in a stream of its own, which waits for no kernel; one side is memory of GPU `device`. Returns once
/// the bytes have arrived. Returns false if the driver fails.
bool gpu_copy(void* to, const void* from, uint64_t bytes, int device);

}  // namespace pw::torus
