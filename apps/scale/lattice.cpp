// Coordinates, and boustrophedon walks (reflected Gray order): each step changes one coordinate by one.
#include "lattice.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace scale {

namespace {

/// Some dimensions of the grid with as many elements in total as some adjacent dimensions of the torus.
struct Group {
  std::vector<size_t> grid_dims;
  size_t torus_first;
  Extents grid, torus;
};

std::vector<Group> groups_of(const Extents& grid, const std::vector<size_t>& order, const Extents& torus) {
  std::vector<Group> groups;
  for (size_t g = 0, t = 0; g < grid.size() && t < torus.size();) {
    Group group{{}, t, {}, {torus[t]}};
    ++t;
    do {
      if (volume(group.grid) > volume(group.torus)) {
        group.torus.push_back(torus[t++]);
      } else {
        group.grid_dims.push_back(order[g]);
        group.grid.push_back(grid[order[g++]]);
      }
    } while (volume(group.grid) != volume(group.torus));
    groups.push_back(group);
  }
  return groups;
}

/// Uses the order of the grid's dimensions that gives the most groups: smaller groups have shorter routes.
std::vector<Group> best_groups(const Extents& grid, const Extents& torus) {
  if (volume(grid) != volume(torus))
    throw std::runtime_error("scale: the grid and the torus must have the same number of elements.");
  std::vector<size_t> order(grid.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<Group> best;
  do {
    std::vector<Group> groups = groups_of(grid, order, torus);
    if (groups.size() > best.size()) best = std::move(groups);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<size_t> walked(size_t step, const Extents& extents) {
  std::vector<size_t> at(extents.size());
  size_t below = volume(extents);
  for (size_t dim = extents.size(); dim-- > 0;) {
    below /= extents[dim];
    at[dim] = step / below;
    step %= below;
    if (at[dim] % 2 == 1) step = below - 1 - step;
  }
  return at;
}

size_t step_of(const std::vector<size_t>& at, const Extents& extents) {
  size_t step = 0, below = 1;
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    if (at[dim] % 2 == 1) step = below - 1 - step;
    step += at[dim] * below;
    below *= extents[dim];
  }
  return step;
}

}  // namespace

size_t volume(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), size_t{1}, std::multiplies<>());
}

std::vector<size_t> coordinates(size_t index, const Extents& extents) {
  std::vector<size_t> at;
  for (const size_t extent : extents) {
    at.push_back(index % extent);
    index /= extent;
  }
  return at;
}

size_t index_of(const std::vector<size_t>& at, const Extents& extents) {
  size_t index = 0;
  for (size_t dim = extents.size(); dim-- > 0;) index = index * extents[dim] + at[dim];
  return index;
}

size_t neighbour(size_t index, const Extents& extents, size_t dim, bool forward) {
  std::vector<size_t> at = coordinates(index, extents);
  at[dim] = (at[dim] + (forward ? 1 : extents[dim] - 1)) % extents[dim];
  return index_of(at, extents);
}

std::vector<size_t> folded(const Extents& grid, const Extents& torus) {
  const std::vector<Group> groups = best_groups(grid, torus);
  std::vector<size_t> node_of(volume(grid));
  for (size_t rank = 0; rank < node_of.size(); ++rank) {
    const std::vector<size_t> at = coordinates(rank, grid);
    std::vector<size_t> node(torus.size());
    for (const Group& group : groups) {
      std::vector<size_t> mine;
      for (const size_t dim : group.grid_dims) mine.push_back(at[dim]);
      const std::vector<size_t> there = walked(step_of(mine, group.grid), group.torus);
      for (size_t i = 0; i < there.size(); ++i) node[group.torus_first + i] = there[i];
    }
    node_of[rank] = index_of(node, torus);
  }
  return node_of;
}

std::vector<size_t> shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  // Not std::shuffle, whose result differs between libraries.
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace scale
