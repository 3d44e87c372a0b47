#include "array/grid.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "base/status.h"

namespace pw::array {
namespace {

// Avoids the sum of extent and parts, which may overflow.
uint64_t longest(uint64_t extent, uint32_t parts) { return extent / parts + (extent % parts != 0 ? 1 : 0); }

}  // namespace

std::string text_of(const pw_grid& grid) {
  std::string sizes;
  for (uint32_t d = 0; d < grid.dims && d < PW_MAX_DIMS; ++d)
    sizes += format("{}{}", d == 0 ? "" : "x", grid.extent[d]);
  return sizes;
}

Interval block_of(uint64_t extent, uint32_t parts, uint32_t index) {
  if (index >= parts)
    throw Error(PW_OUT_OF_RANGE,
                format("part {} of {} parts of {} elements; parts are counted from 0", index, parts, extent));
  const uint64_t block = longest(extent, parts);
  if (block == 0 || index > extent / block) return {extent, 0};
  const uint64_t first = index * block;
  return {first, std::min(block, extent - first)};
}

uint32_t used_parts(uint64_t extent, uint32_t parts) {
  const uint64_t block = longest(extent, parts);
  return block == 0 ? 0 : static_cast<uint32_t>(extent / block + (extent % block != 0 ? 1 : 0));
}

std::optional<uint32_t> neighbour(uint32_t used, uint32_t index, Side side, bool periodic) {
  if (side == below) {
    if (index > 0) return index - 1;
    return periodic ? std::optional(used - 1) : std::nullopt;
  }
  if (index + 1 < used) return index + 1;
  return periodic ? std::optional(0U) : std::nullopt;
}

Grid::Grid(const pw_grid& grid, int team_size) : grid_(grid) {
  if (grid.dims < 1 || grid.dims > PW_MAX_DIMS)
    throw Error(PW_INVALID_ARGUMENT,
                format("a process grid of {} dimensions; 1 to {} are possible", grid.dims, PW_MAX_DIMS));
  uint64_t product = 1;
  for (uint32_t d = 0; d < grid.dims; ++d) {
    if (grid.extent[d] == 0)
      throw Error(PW_INVALID_ARGUMENT, format("process grid {}: dimension {} is 0", text_of(grid), d));
    // Stops multiplying beyond the size of any team, so that the product cannot overflow.
    if (product <= INT32_MAX) product *= grid.extent[d];
  }
  if (product != static_cast<uint64_t>(team_size))
    throw Error(PW_INVALID_ARGUMENT,
                format("a process grid of {} has {}{} places, but the team has {} ranks; they must be "
                       "as many",
                       text_of(grid), product > INT32_MAX ? "over " : "",
                       product > INT32_MAX ? INT32_MAX : product, team_size));
  size_ = team_size;
}

Coordinates Grid::coordinates(int rank) const {
  Coordinates at{};
  auto rest = static_cast<uint32_t>(rank);
  for (uint32_t d = dims(); d-- > 0;) {
    at[d] = rest % extent(d);
    rest /= extent(d);
  }
  return at;
}

int Grid::rank(const Coordinates& at) const {
  uint32_t rank = 0;
  for (uint32_t d = 0; d < dims(); ++d) rank = rank * extent(d) + at[d];
  return static_cast<int>(rank);
}

}  // namespace pw::array
