// Where a rank's part of the lattice lies: the process grid, the block distribution and the neighbours.
#ifndef STENCIL2D_LATTICE_H
#define STENCIL2D_LATTICE_H

#include <cstddef>
#include <cstdint>

namespace stencil {

enum Dim { Y = 0, X = 1 };
enum Side { Before = 0, After = 1 };  // towards index 0 (north, west); towards the end (south, east)

/// One rank's part of a lattice that is distributed in blocks over grid[Y] x grid[X] ranks, X the fastest.
/// Its array has (count[Y] + 2) x (count[X] + 2) doubles: its own cells and a shadow of one.
struct Lattice {
  uint64_t global[2];
  int grid[2];
  bool periodic;
  int at[2];          // this rank's place in the grid
  uint64_t first[2];  // global index of its first cell
  uint64_t count[2];

  size_t pitch() const { return count[X] + 2; }
  size_t cells() const { return (count[Y] + 2) * pitch(); }
  size_t bytes() const { return cells() * sizeof(double); }
  int ranks() const { return grid[Y] * grid[X]; }

  /// The rank next to this one; -1 beyond a fixed border. Itself, where a periodic dimension has one rank.
  int neighbour(Dim dim, Side side) const;
};

/// Throws std::runtime_error with the numbers when a rank would have no cells.
Lattice make_lattice(const uint64_t (&global)[2], const int (&grid)[2], bool periodic, int rank);

}  // namespace stencil

#endif
