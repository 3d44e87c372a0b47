// Coarrays: memory that all images put to and get from.
#pragma once

#include <cstddef>

#include "peerway/peerway.hpp"

namespace pwx {

/// The copy on the GPU of the coarray that this host memory is of, and where in it; null: it is of none that
/// transfers between GPUs use.
peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset);

/// What every statement that synchronises images begins with: all that this image did before it is done, by
/// its kernels, which write coarrays, too, and at the other images.
void complete_segment();

void free_coarrays();
void free_locks();

}  // namespace pwx
