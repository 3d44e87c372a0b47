#include "array/agreement.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "array/grid.h"
#include "array/halo.h"
#include "base/format.h"
#include "base/status.h"

namespace pw::array {
namespace {

/// The two ranks that are compared, the lower rank first.
struct Pair {
  int first, second;
};

[[noreturn]] void differ(const std::string& text) {
  throw Error(PW_INVALID_ARGUMENT, "ranks ask for different halos: " + text);
}

template <typename Value>
void same(const std::string& property, const Value& first, const Value& second, Pair ranks) {
  if (first != second)
    differ(
        format("{} is {} on rank {}, but {} on rank {}", property, first, ranks.first, second, ranks.second));
}

void check_dimension(const pw_array_dim& first, const pw_array_dim& second, const std::string& where,
                     Pair ranks) {
  same("the extent of " + where, first.extent, second.extent, ranks);
  if (first.grid_dim != second.grid_dim)
    differ(format("{} is distributed over dimension {} of the grid on rank {}, but over {} on rank {}", where,
                  first.grid_dim, ranks.first, second.grid_dim, ranks.second));
  same("periodic of " + where, first.periodic, second.periodic, ranks);
  same("the shadow below of " + where, first.shadow[0], second.shadow[0], ranks);
  same("the shadow above of " + where, first.shadow[1], second.shadow[1], ranks);
  same("the width below of " + where, first.width[0], second.width[0], ranks);
  same("the width above of " + where, first.width[1], second.width[1], ranks);
}

void check_array(const pw_array& first, const pw_array& second, size_t number, Pair ranks) {
  same(format("the element size of array {} in bytes", number), first.element_bytes, second.element_bytes,
       ranks);
  same(format("the number of dimensions of array {}", number), first.dims, second.dims, ranks);
  for (uint32_t d = 0; d < first.dims && d < PW_MAX_ARRAY_DIMS; ++d)
    check_dimension(first.dim[d], second.dim[d], format("dimension {} of array {}", d, number), ranks);
}

bool owns_nothing(std::span<const Distribution> arrays, int rank) {
  return std::ranges::all_of(
      arrays, [&](const Distribution& array) { return array.empty(array.grid().coordinates(rank)); });
}

void add_neighbours(std::set<int>& ranks, const Grid& grid, int rank) {
  for (uint32_t d = 0; d < grid.dims(); ++d)
    for (const uint32_t step : {1u, grid.extent(d) - 1}) {
      Coordinates at = grid.coordinates(rank);
      at[d] = (at[d] + step) % grid.extent(d);
      ranks.insert(grid.rank(at));
    }
}

}  // namespace

Bytes pack(const RequestedHalo& halo) {
  ByteWriter to;
  to.put(std::as_bytes(std::span(&halo.opening, 1)));
  for (pw_array array : halo.arrays) {
    array.region = nullptr;
    to.put(std::as_bytes(std::span(&array, 1)));
  }
  return to.take();
}

RequestedHalo parse_requested_halo(ByteView bytes) {
  ByteReader from(bytes, "what a rank asks for");
  RequestedHalo halo;
  std::memcpy(&halo.opening, from.take(sizeof(HaloOpening)).data(), sizeof(HaloOpening));
  for (uint32_t remaining = halo.opening.arrays; remaining > 0; --remaining)
    std::memcpy(&halo.arrays.emplace_back(), from.take(sizeof(pw_array)).data(), sizeof(pw_array));
  from.end();
  return halo;
}

void check_same(int rank, const RequestedHalo& halo, int other_rank, const RequestedHalo& other) {
  if (other_rank < rank) return check_same(other_rank, other, rank, halo);
  const Pair ranks{rank, other_rank};
  same("the grid", text_of(halo.opening.grid), text_of(other.opening.grid), ranks);
  same("the number of arrays", halo.opening.arrays, other.opening.arrays, ranks);
  same("corners", halo.opening.corners, other.opening.corners, ranks);
  for (size_t a = 0; a < halo.arrays.size(); ++a) check_array(halo.arrays[a], other.arrays[a], a, ranks);
}

std::vector<int> listeners(std::span<const Distribution> arrays, int rank, bool corners) {
  // The strides do not affect which ranks share a face.
  const auto dense = [&](int of, uint32_t a) {
    return arrays[a].strides({}, arrays[a].grid().coordinates(of));
  };
  const Halo halo = halo_of(arrays, dense, rank, corners);
  std::set<int> ranks;
  for (const auto* faces : {&halo.sends, &halo.receives})
    for (const Face& face : *faces) ranks.insert(face.rank);
  const Grid& grid = arrays[0].grid();
  add_neighbours(ranks, grid, rank);
  if (owns_nothing(arrays, rank)) ranks.insert(0);
  if (rank == 0)
    for (int other = 1; other < grid.size(); ++other)
      if (owns_nothing(arrays, other)) ranks.insert(other);
  ranks.erase(rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace pw::array
