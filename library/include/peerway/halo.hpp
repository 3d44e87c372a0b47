// Distributed arrays and their halos for C++20. Part of peerway.hpp.
//
//   // ny x nx doubles over a grid of 2 x 2 ranks, one layer of shadow all round
//   auto u = peerway::Array(region, sizeof(double),
//                           {{.extent = ny, .grid_dim = 0, .periodic = true, .shadow = {1, 1}},
//                            {.extent = nx, .grid_dim = 1, .periodic = true, .shadow = {1, 1}}});
//   auto halo = ctx.halo({u}, peerway::Grid{2, 2});
//   check(halo.start());  interior();  check(halo.finish());  boundary();
#ifndef PEERWAY_HALO_HPP
#define PEERWAY_HALO_HPP

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peerway/plan.hpp"

namespace peerway {

// ---- halo

/// Ranks in a grid; the last dimension varies fastest.
class Grid {
 public:
  Grid(std::initializer_list<uint32_t> extents) : Grid(std::span(extents.begin(), extents.size())) {}
  explicit Grid(std::span<const uint32_t> extents) {
    if (extents.size() > PW_MAX_DIMS) {
      throw Error(Status::invalid_argument, "peerway: a process grid of " + std::to_string(extents.size()) +
                                                " dimensions; at most " + std::to_string(PW_MAX_DIMS) +
                                                " are possible.");
    }
    grid_.dims = static_cast<uint32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), grid_.extent);
  }

  /// A rank's coordinates in the grid.
  [[nodiscard]] std::vector<uint32_t> coordinates(int rank) const {
    std::vector<uint32_t> at(grid_.dims);
    auto rest = static_cast<uint32_t>(rank);
    for (uint32_t d = grid_.dims; d-- > 0; rest /= std::max(grid_.extent[d], 1U))
      at[d] = rest % std::max(grid_.extent[d], 1U);
    return at;
  }
  [[nodiscard]] const pw_grid& get() const { return grid_; }

 private:
  pw_grid grid_{};
};

/// The elements `first` to `first + count - 1` of a dimension.
struct Part {
  uint64_t first;
  uint64_t count;
};

/// Part `index` of `extent` elements that are block-distributed over `parts`. Every part has ceil(extent /
/// parts) elements except the last ones, which are shorter or empty.
inline Part block_of(uint64_t extent, uint32_t parts, uint32_t index) {
  Part part{};
  check(pw_grid_block(extent, parts, index, &part.first, &part.count));
  return part;
}

/// Layers below and above what a rank owns.
using Layers = std::array<uint64_t, 2>;

/// One dimension of a distributed array, in elements.
struct ArrayDim {
  uint64_t extent = 0;    ///< of the whole array, over all ranks
  int grid_dim = -1;      ///< the dimension of the grid it is distributed over; -1: every rank has it all
  bool periodic = false;  ///< the first element follows the last
  Layers shadow{};        ///< layers that this rank's memory holds
  std::optional<Layers> width{};  ///< layers to refresh, at most the shadow; default: all of it
  int64_t stride = 0;             ///< bytes between elements; 0 in all dimensions: dense
};

/// One rank's part, with its shadow, of a distributed array.
class Array {
 public:
  /// `offset` is where the part, including its shadow, begins in the region. The region must stay open as
  /// long as any halo made from this array.
  Array(const Region& region, uint64_t element_bytes, std::initializer_list<ArrayDim> dims,
        uint64_t offset = 0)
      : Array(region.get(), element_bytes, std::span(dims.begin(), dims.size()), offset) {}
  Array(const Region& region, uint64_t element_bytes, std::span<const ArrayDim> dims, uint64_t offset = 0)
      : Array(region.get(), element_bytes, dims, offset) {}
  /// For a rank that owns no part of the array and needs no memory.
  Array(uint64_t element_bytes, std::span<const ArrayDim> dims) : Array(nullptr, element_bytes, dims, 0) {}

  [[nodiscard]] const pw_array& get() const { return array_; }

 private:
  Array(pw_region* region, uint64_t element_bytes, std::span<const ArrayDim> dims, uint64_t offset) {
    if (dims.size() > PW_MAX_ARRAY_DIMS) {
      throw Error(Status::invalid_argument, "peerway: an array of " + std::to_string(dims.size()) +
                                                " dimensions; at most " + std::to_string(PW_MAX_ARRAY_DIMS) +
                                                " are possible.");
    }
    array_.region = region;
    array_.offset = offset;
    array_.element_bytes = element_bytes;
    array_.dims = static_cast<uint32_t>(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      const ArrayDim& dim = dims[d];
      const Layers width = dim.width.value_or(dim.shadow);
      array_.dim[d] = {
          dim.extent,           dim.grid_dim, dim.periodic ? 1U : 0U, {dim.shadow[0], dim.shadow[1]},
          {width[0], width[1]}, dim.stride};
    }
  }

  pw_array array_{};
};

inline Plan Context::halo(std::span<const Array> arrays, const Grid& grid, HaloParts parts) {
  std::vector<pw_array> all;
  for (const Array& array : arrays) all.push_back(array.get());
  pw_plan* plan = nullptr;
  check(pw_halo_create(get(), all.data(), static_cast<uint32_t>(all.size()), &grid.get(),
                       static_cast<pw_halo_parts>(parts), &plan));
  return Plan(plan);
}

inline Plan Context::halo(std::initializer_list<Array> arrays, const Grid& grid, HaloParts parts) {
  return halo(std::span(arrays.begin(), arrays.size()), grid, parts);
}

}  // namespace peerway

#endif
