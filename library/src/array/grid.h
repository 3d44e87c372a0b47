// The process grid and the block distribution of one dimension over it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "peerway/peerway.h"

namespace pw::array {

/// One of the two neighbours in a dimension, numbered as in shadow[2] and width[2]: 0 is below, 1 is above.
enum Side : uint8_t { below = 0, above = 1 };

struct Interval {
  uint64_t first = 0;
  uint64_t count = 0;
};

/// Returns part number `index` of `extent` elements. All parts have ceil(extent / parts) elements except the
/// last ones, which are shorter or empty. Throws Error.
Interval block_of(uint64_t extent, uint32_t parts, uint32_t index);

/// Returns the number of non-empty parts, which come first.
uint32_t used_parts(uint64_t extent, uint32_t parts);

/// Returns the part next to `index` among the `used` non-empty parts; wraps around if `periodic`.
std::optional<uint32_t> neighbour(uint32_t used, uint32_t index, Side side, bool periodic);

/// Returns "2x3".
std::string text_of(const pw_grid& grid);

/// The position of a rank in the grid.
using Coordinates = std::array<uint32_t, PW_MAX_DIMS>;

/// The ranks in a grid; the last dimension varies fastest. Made from the pw_grid that peerway::Grid of the
/// C++ interface fills in.
class Grid {
 public:
  /// Throws Error unless the grid has as many places as the team has ranks.
  Grid(const pw_grid& grid, int team_size);

  [[nodiscard]] uint32_t dims() const { return grid_.dims; }
  [[nodiscard]] uint32_t extent(uint32_t d) const { return grid_.extent[d]; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] Coordinates coordinates(int rank) const;
  [[nodiscard]] int rank(const Coordinates& at) const;

 private:
  pw_grid grid_;
  int size_ = 1;
};

}  // namespace pw::array
