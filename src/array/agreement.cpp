#include "array/agreement.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"

namespace pw::array {
namespace {

template <typename Value>
std::vector<Value> gather(Team& team, std::span<const Value> mine) {
  const std::vector<std::byte> bytes = team.all_gather(std::as_bytes(mine), PW_FOREVER);
  std::vector<Value> all(bytes.size() / sizeof(Value));
  if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

std::string text(const pw_grid& grid) {
  std::string sizes;
  for (uint32_t d = 0; d < grid.dims && d < PW_MAX_DIMS; ++d)
    sizes += format("{}{}", d == 0 ? "" : "x", grid.extent[d]);
  return sizes;
}

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

Opening refusal_of(const Error& error) {
  Opening opening;
  opening.status = error.status();
  std::strncpy(opening.message, error.what(), sizeof opening.message - 1);
  return opening;
}

void check_openings(std::span<const Opening> openings, int rank) {
  const auto refuse = [&](size_t who) {
    const Opening& opening = openings[who];
    if (opening.status == PW_OK) return;
    const auto status = static_cast<pw_status>(opening.status);
    std::string_view message(opening.message, strnlen(opening.message, sizeof opening.message));
    if (who == static_cast<size_t>(rank)) throw Error(status, std::string(message));
    constexpr std::string_view kPrefix = "peerway: ";
    if (message.substr(0, kPrefix.size()) == kPrefix) message.remove_prefix(kPrefix.size());
    throw Error(status, format("peerway: rank {} cannot make this halo: {}", who, message));
  };
  refuse(static_cast<size_t>(rank));
  for (size_t who = 0; who < openings.size(); ++who) refuse(who);
  const Opening& first = openings[0];
  for (size_t who = 1; who < openings.size(); ++who) {
    const Opening& here = openings[who];
    const std::string mine = text(first.grid), theirs = text(here.grid);
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

std::vector<Opening> exchange(Team& team, const Opening& mine) {
  std::vector<Opening> all = gather(team, std::span<const Opening>(&mine, 1));
  check_openings(all, team.rank());
  return all;
}

std::vector<pw_array> exchange(Team& team, std::span<const pw_array> mine) {
  std::vector<pw_array> plain(mine.begin(), mine.end());
  for (pw_array& array : plain) array.region = nullptr;
  std::vector<pw_array> all = gather(team, std::span<const pw_array>(plain));
  check_arrays(all, static_cast<uint32_t>(mine.size()));
  return all;
}

}  // namespace pw::array
