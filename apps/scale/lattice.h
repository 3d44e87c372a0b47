// Grids of ranks and of nodes, and the mapping between them. The first dimension varies fastest.
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

/// Returns the neighbour of an element in dimension `dim`, around the edge.
size_t neighbour(size_t index, const Extents& extents, size_t dim, bool forward);

/// Returns the node of each rank, chosen so that neighbours in the grid are near in the torus. Some
/// dimensions of the grid that have as many elements as some of the torus follow a boustrophedon walk, whose
/// steps all go to a neighbour. A grid of one dimension becomes a ring of single hops if the extents are
/// even.
std::vector<size_t> folded(const Extents& grid, const Extents& torus);

/// Returns a permutation of 0 to count - 1 that depends only on `seed`.
std::vector<size_t> shuffled(size_t count, uint64_t seed);

}  // namespace scale

#endif
