// Coarrays: memory that all images put to and get from.
#pragma once

#include <cstddef>

#include "peerway/peerway.hpp"

namespace pwx {

/// The copy on the GPU of the coarray that this host memory is of, and where in it; null: it is of none that
/// transfers between GPUs use.
peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset);

void free_coarrays();
void free_locks();

}  // namespace pwx
