#include "array/agreement.h"

#include <cstring>
#include <string>

#include "array/grid.h"
#include "base/format.h"

namespace pw::array {
namespace {

[[noreturn]] void differ(const std::string& what, uint64_t here, uint64_t first, size_t rank) {
  throw Error(PW_INVALID_ARGUMENT,
              format("peerway: ranks ask for different halos: {} is {} on rank 0, but {} on rank {}", what,
                     first, here, rank));
}

void same(const std::string& what, uint64_t here, uint64_t first, size_t rank) {
  if (here != first) differ(what, here, first, rank);
}

void check_dimension(const pw_array_dim& here, const pw_array_dim& first, const std::string& where,
                     size_t rank) {
  same("the extent of " + where, here.extent, first.extent, rank);
  if (here.grid_dim != first.grid_dim)
    throw Error(PW_INVALID_ARGUMENT, format("peerway: ranks ask for different halos: {} is distributed over "
                                            "dimension {} of the grid on rank 0, but over {} on rank {}",
                                            where, first.grid_dim, here.grid_dim, rank));
  same("periodic of " + where, here.periodic, first.periodic, rank);
  same("the shadow below of " + where, here.shadow[0], first.shadow[0], rank);
  same("the shadow above of " + where, here.shadow[1], first.shadow[1], rank);
  same("the width below of " + where, here.width[0], first.width[0], rank);
  same("the width above of " + where, here.width[1], first.width[1], rank);
}

void check_array(const pw_array& here, const pw_array& first, size_t number, size_t rank) {
  same(format("the element size of array {} in bytes", number), here.element_bytes, first.element_bytes,
       rank);
  same(format("the number of dimensions of array {}", number), here.dims, first.dims, rank);
  for (uint32_t d = 0; d < here.dims && d < PW_MAX_ARRAY_DIMS; ++d)
    check_dimension(here.dim[d], first.dim[d], format("dimension {} of array {}", d, number), rank);
}

}  // namespace

void check_openings(std::span<const Opening> openings) {
  const Opening& first = openings[0];
  for (size_t who = 1; who < openings.size(); ++who) {
    const Opening& here = openings[who];
    const std::string mine = text_of(first.grid), theirs = text_of(here.grid);
    if (mine != theirs)
      throw Error(
          PW_INVALID_ARGUMENT,
          format("peerway: ranks ask for different halos: the grid is {} on rank 0, but {} on rank {}", mine,
                 theirs, who));
    same("the number of arrays", here.arrays, first.arrays, who);
    same("corners", here.corners, first.corners, who);
  }
}

void check_arrays(std::span<const pw_array> all, uint32_t arrays) {
  for (size_t i = arrays; i < all.size(); ++i) check_array(all[i], all[i % arrays], i % arrays, i / arrays);
}

Told exchange(Team& team, const Objection& objection, const Opening& mine, std::span<const pw_array> arrays) {
  ByteWriter to;
  to.put(std::as_bytes(std::span(&mine, 1)));
  if (!objection)  // else the arrays may be nonsense
    for (pw_array array : arrays) {
      array.region = nullptr;
      to.put(std::as_bytes(std::span(&array, 1)));
    }
  const std::vector<Bytes> parts = agree(team, objection, to.take(), kMakeHalo);
  Told told;
  for (const Bytes& part : parts) {
    ByteReader from(part, "what a rank asks for");
    std::memcpy(&told.openings.emplace_back(), from.take(sizeof(Opening)).data(), sizeof(Opening));
  }
  check_openings(told.openings);
  for (const Bytes& part : parts) {
    ByteReader from(part, "what a rank asks for");
    from.take(sizeof(Opening));
    for (size_t a = 0; a < arrays.size(); ++a)
      std::memcpy(&told.arrays.emplace_back(), from.take(sizeof(pw_array)).data(), sizeof(pw_array));
  }
  check_arrays(told.arrays, static_cast<uint32_t>(arrays.size()));
  return told;
}

}  // namespace pw::array
