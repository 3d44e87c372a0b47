// Turns a block-strided copy into copies for the copy engine, which supports contiguous, two- and
// three-dimensional copies. A pure decision, tested without a GPU.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace pw::cuda {

/// One copy by the engine: `depth` planes of `height` rows of `width` bytes.
struct EnginePiece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t width = 0;
  uint64_t height = 1;
  uint64_t depth = 1;
  uint64_t to_pitch = 0;  ///< bytes from row to row
  uint64_t from_pitch = 0;
  uint64_t to_rows = 0;  ///< distance between planes, in pitches
  uint64_t from_rows = 0;
};

/// The dimensions that one piece covers; loops go over the others. -1: none.
struct EngineSplit {
  int row = -1;
  int plane = -1;
};

/// Returns the split with the fewest pieces. `max_pitch` is the device's limit.
EngineSplit engine_split(const Layout& layout, uint64_t max_pitch);

/// Calls `body(piece)` for each piece of the copy until one fails; `body` returns whether to continue.
template <typename Body>
void for_each_engine_piece(const Copy& copy, uint64_t max_pitch, Body&& body) {
  const Layout& layout = copy.layout;
  const Shape& shape = layout.shape;
  const EngineSplit split = engine_split(layout, max_pitch);
  EnginePiece piece{.to = copy.to, .from = copy.from, .width = shape.block_bytes};
  if (split.row >= 0) {
    piece.height = shape.count[split.row];
    piece.to_pitch = static_cast<uint64_t>(layout.to[split.row]);
    piece.from_pitch = static_cast<uint64_t>(layout.from[split.row]);
  }
  if (split.plane >= 0) {
    piece.depth = shape.count[split.plane];
    piece.to_rows = static_cast<uint64_t>(layout.to[split.plane]) / piece.to_pitch;
    piece.from_rows = static_cast<uint64_t>(layout.from[split.plane]) / piece.from_pitch;
  }
  uint64_t index[PW_MAX_DIMS] = {};
  for (;;) {
    if (!body(piece)) return;
    int d = static_cast<int>(shape.dims) - 1;
    for (; d >= 0; --d) {  // count up, the last dimension first
      if (d == split.row || d == split.plane) continue;
      piece.to += layout.to[d];
      piece.from += layout.from[d];
      if (++index[d] < shape.count[d]) break;
      piece.to -= static_cast<int64_t>(shape.count[d]) * layout.to[d];
      piece.from -= static_cast<int64_t>(shape.count[d]) * layout.from[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace pw::cuda
