// The memory of coarrays, which all images put to and get from.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "xacc/runtime/data/coarrays_on_gpus.h"
#include "xacc/runtime/program/symmetric_memory.h"

/// The memory of one coarray on all images.
struct pwx_coarray_state {
  pwx::SymmetricMemory memory;
  std::unique_ptr<pwx::CoarrayOnGpus> on_gpus;  ///< set by pwx_coarray_on_gpus
  std::vector<long> image_bounds;               ///< set by pwx_coarray_keep_bounds
};

namespace pwx {

/// The GPU copy of the coarray that contains this host memory, with the offset in it; null if the memory is
/// in no coarray that takes part in transfers between GPUs.
peerway::Region* coarray_on_gpu(const void* address, size_t bytes, size_t& offset);

/// Ends a coarray. No image may use it any more.
void free_coarray(const pwx_coarray_state* coarray);

/// Call it before the context ends.
void free_coarrays();

}  // namespace pwx
