// Converts a face (or edge, or corner) to operations: the fewest blocks at regular strides, cut into pieces
// if there are more dimensions than one operation can move. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/shape.h"

namespace pw::array {

/// One dimension of a face, with the strides of the arrays at both ends, in bytes.
struct FaceDim {
  uint64_t count = 1;
  int64_t to = 0;
  int64_t from = 0;
};

/// Pieces with one layout, and where each begins in the face at both ends.
struct CutFace {
  struct Piece {
    uint64_t to = 0;
    uint64_t from = 0;
  };
  Layout layout;
  std::vector<Piece> pieces;
};

/// Cuts a face. Both ends compute the same pieces in the same order: dimensions are merged if they are
/// contiguous in both arrays, and the dimensions with the fewest elements are cut. Throws Error if there
/// would be more than kMaxPieces.
inline constexpr uint64_t kMaxPieces = 65536;
CutFace cut_face(std::span<const FaceDim> dims, uint64_t element_bytes);

}  // namespace pw::array
