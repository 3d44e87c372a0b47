// The block distribution, as pw_grid_block of peerway.h does it: all blocks as long as the first but the last
// ones.
#include "lattice.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace stencil {

Lattice make_lattice(const uint64_t (&global)[2], const int (&grid)[2], bool periodic, int rank) {
  Lattice lattice{
      {global[Y], global[X]}, {grid[Y], grid[X]}, periodic, {rank / grid[X], rank % grid[X]}, {}, {}};
  for (const Dim dim : {Y, X}) {
    const uint64_t parts = static_cast<uint64_t>(grid[dim]);
    const uint64_t longest = (global[dim] + parts - 1) / parts;
    if (longest * (parts - 1) >= global[dim]) {
      throw std::runtime_error("stencil2d: " + std::to_string(global[dim]) +
                               (dim == Y ? " rows" : " columns") + " in blocks of " +
                               std::to_string(longest) + " leave nothing for the last of " +
                               std::to_string(parts) + " ranks; take fewer ranks in that dimension.");
    }
    lattice.first[dim] = longest * static_cast<uint64_t>(lattice.at[dim]);
    lattice.count[dim] = std::min(longest, global[dim] - lattice.first[dim]);
  }
  return lattice;
}

int Lattice::neighbour(Dim dim, Side side) const {
  int there[2] = {at[Y], at[X]};
  there[dim] += side == After ? 1 : -1;
  if (!periodic && (there[dim] < 0 || there[dim] >= grid[dim])) return -1;
  there[dim] = (there[dim] + grid[dim]) % grid[dim];
  return there[Y] * grid[X] + there[X];
}

}  // namespace stencil
