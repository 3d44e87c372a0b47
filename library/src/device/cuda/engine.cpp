#include "device/cuda/engine.h"

namespace pw::cuda {
namespace {

// Rows must not overlap, and the engine must support the pitch.
bool can_be_row(const Layout& layout, uint32_t d, uint64_t max_pitch) {
  const auto fits = [&](int64_t stride) {
    return stride > 0 && static_cast<uint64_t>(stride) >= layout.shape.block_bytes &&
           static_cast<uint64_t>(stride) <= max_pitch;
  };
  return fits(layout.to[d]) && fits(layout.from[d]);
}

// The engine's planes must be a whole number of pitches apart, and must not overlap.
bool can_be_plane(const Layout& layout, uint32_t row, uint32_t plane) {
  const auto nests = [&](int64_t outer, int64_t inner) {
    return outer > 0 && outer % inner == 0 && static_cast<uint64_t>(outer / inner) >= layout.shape.count[row];
  };
  return nests(layout.to[plane], layout.to[row]) && nests(layout.from[plane], layout.from[row]);
}

}  // namespace

EngineSplit engine_split(const Layout& layout, uint64_t max_pitch) {
  EngineSplit best;
  uint64_t covered = 1;
  for (uint32_t row = 0; row < layout.shape.dims; ++row) {
    if (!can_be_row(layout, row, max_pitch)) continue;
    if (layout.shape.count[row] > covered) {
      covered = layout.shape.count[row];
      best = {static_cast<int>(row), -1};
    }
    for (uint32_t plane = 0; plane < layout.shape.dims; ++plane) {
      if (plane == row || !can_be_plane(layout, row, plane)) continue;
      const uint64_t blocks = layout.shape.count[row] * layout.shape.count[plane];
      if (blocks > covered) {
        covered = blocks;
        best = {static_cast<int>(row), static_cast<int>(plane)};
      }
    }
  }
  return best;
}

}  // namespace pw::cuda
