// Copies by the CPU: block-strided, and for large sizes either through the caches or around them. Which is
// faster at which size is measured (they are two methods of the path `peer`), not decided here.
#pragma once

#include "device/device.h"

namespace pw {

/// Copies through the caches.
void host_copy(const Copy& copy);

/// Copies contiguous data with non-temporal stores, which do not read the target into the cache first. Blocks
/// of strided layouts that are too small for that are copied like in host_copy.
void host_copy_streaming(const Copy& copy);

/// Calls `body(to, from)` for each block of the layout.
template <typename Body>
void for_each_block(const Copy& copy, Body&& body) {
  const Shape& shape = copy.layout.shape;
  if (shape.bytes() == 0) return;
  // Missing outer dimensions count as one element, so that four plain loops handle every shape.
  uint64_t count[PW_MAX_DIMS] = {1, 1, 1, 1};
  int64_t to[PW_MAX_DIMS] = {}, from[PW_MAX_DIMS] = {};
  const uint32_t shift = PW_MAX_DIMS - shape.dims;
  for (uint32_t d = 0; d < shape.dims; ++d) {
    count[d + shift] = shape.count[d];
    to[d + shift] = copy.layout.to[d];
    from[d + shift] = copy.layout.from[d];
  }
  for (uint64_t i = 0; i < count[0]; ++i)
    for (uint64_t j = 0; j < count[1]; ++j)
      for (uint64_t k = 0; k < count[2]; ++k) {
        std::byte* t = copy.to + static_cast<int64_t>(i) * to[0] + static_cast<int64_t>(j) * to[1] +
                       static_cast<int64_t>(k) * to[2];
        const std::byte* f = copy.from + static_cast<int64_t>(i) * from[0] +
                             static_cast<int64_t>(j) * from[1] + static_cast<int64_t>(k) * from[2];
        for (uint64_t l = 0; l < count[3]; ++l, t += to[3], f += from[3]) body(t, f);
      }
}

}  // namespace pw
