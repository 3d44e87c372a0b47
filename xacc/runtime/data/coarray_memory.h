// Coarrays: memory that all images put to and get from.
#pragma once

#include <cstddef>
#include <memory>

#include "xacc/runtime/data/coarrays_on_gpus.h"
#include "xacc/runtime/program/symmetric_memory.h"

/// The memory of one coarray on all images.
struct pwx_coarray_state {
  pwx::SymmetricMemory memory;
  std::unique_ptr<pwx::CoarrayOnGpus> on_gpus;  ///< of pwx_coarray_on_gpus
};

namespace pwx {

/// The copy on the GPU of the coarray that this host memory is of, and where in it; null: it is of none that
/// transfers between GPUs use.
peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset);

/// Before the context ends.
void free_coarrays();

}  // namespace pwx
