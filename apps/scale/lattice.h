// Grids of ranks and of nodes, and how the one is laid on the other. The first dimension is the fastest.
#ifndef SCALE_LATTICE_H
#define SCALE_LATTICE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scale {

using Extents = std::vector<size_t>;

size_t volume(const Extents& extents);
std::vector<size_t> coordinates(size_t index, const Extents& extents);
size_t index_of(const std::vector<size_t>& coordinates, const Extents& extents);

/// The index of the element `step` further in dimension `dim`, around the edge.
size_t neighbour(size_t index, const Extents& extents, size_t dim, bool forward);

/// The node of each rank so that neighbours of the grid are near in the torus. Some dimensions of the one
/// that have as many elements as some of the other follow a walk to and fro, whose steps all go to a
/// neighbour. A grid of one dimension becomes a ring of single hops where the extents are even.
std::vector<size_t> folded(const Extents& grid, const Extents& torus);

/// A permutation of 0 to count - 1 that depends on `seed` alone.
std::vector<size_t> shuffled(size_t count, uint64_t seed);

}  // namespace scale

#endif
