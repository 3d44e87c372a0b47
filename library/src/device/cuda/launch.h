// Turns a block-strided copy into launches of the copy kernels: how many, and how large the grid is. A pure
// decision, tested without a GPU.
#pragma once

#include <cstdint>

#include "device/cuda/kernels/copy_arguments.h"
#include "device/device.h"
#include "device/steps.h"

namespace pw::cuda {

struct CopyLaunch {
  CopyArguments arguments;
  unsigned word_bytes;
  unsigned blocks;
};

/// Whether one launch can count the copy's words.
bool fits_one_launch(const Copy& copy);

/// Returns the launch, without a signal, for a copy that fits one, on a GPU with `sms` multiprocessors.
CopyLaunch make_launch(const Copy& copy, unsigned sms);

/// Calls `body(copy)` for parts of the copy that fit one launch each, in order, until one fails; `body`
/// returns whether to continue. Returns false if `body` did.
template <typename Body>
bool for_each_launch(const Copy& copy, Body&& body) {
  if (fits_one_launch(copy)) return body(copy);
  Copy part = copy;
  Shape& shape = part.layout.shape;
  if (shape.contiguous()) {
    // Takes half, which leaves room for head and tail.
    const uint64_t most = uint64_t{kMaxWords} / 2 * word_bytes(copy);
    for (uint64_t done = 0; done < copy.layout.shape.block_bytes; done += most) {
      part.to = copy.to + done;
      part.from = copy.from + done;
      shape.block_bytes = std::min(most, copy.layout.shape.block_bytes - done);
      if (!body(part)) return false;
    }
    return true;
  }
  // Halve the slowest dimension until the parts fit; a dimension of one element is dropped.
  if (shape.count[0] == 1) {
    for (uint32_t d = 1; d < shape.dims; ++d) {
      shape.count[d - 1] = shape.count[d];
      part.layout.to[d - 1] = part.layout.to[d];
      part.layout.from[d - 1] = part.layout.from[d];
    }
    --shape.dims;
    return for_each_launch(part, body);
  }
  const uint64_t half = shape.count[0] / 2;
  shape.count[0] = half;
  if (!for_each_launch(part, body)) return false;
  shape.count[0] = copy.layout.shape.count[0] - half;
  part.to += static_cast<int64_t>(half) * part.layout.to[0];
  part.from += static_cast<int64_t>(half) * part.layout.from[0];
  return for_each_launch(part, body);
}

}  // namespace pw::cuda
