#include "array/distribution.h"

#include <algorithm>
#include <string_view>

#include "base/format.h"
#include "base/status.h"

namespace pw::array {
namespace {

const char* name(Side side) { return side == below ? "below" : "above"; }

// Far beyond any memory size, and small enough that sums and products of a few such numbers fit in 128 bits.
constexpr unsigned __int128 kLargestExtent = INT64_MAX;

}  // namespace

ArrayStrides given_strides(const pw_array& array) {
  ArrayStrides strides{};
  for (uint32_t d = 0; d < array.dims && d < PW_MAX_ARRAY_DIMS; ++d) strides[d] = array.dim[d].stride;
  return strides;
}

Distribution::Distribution(const Grid& grid, const pw_array& array, uint32_t number)
    : grid_(grid), array_(array), number_(number) {
  if (array.dims < 1 || array.dims > PW_MAX_ARRAY_DIMS)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} has {} dimensions; 1 to {} are possible", named(), array.dims, PW_MAX_ARRAY_DIMS));
  if (array.element_bytes == 0)
    throw Error(PW_INVALID_ARGUMENT, format("{} has elements of 0 bytes", named()));
  for (uint32_t d = 0; d < array.dims; ++d) check_dimension(d);
  for (uint32_t d = 0; d < array.dims; ++d) check_shadow(d);
}

std::string Distribution::named() const { return format("array {}", number_); }

void Distribution::check_dimension(uint32_t d) const {
  const pw_array_dim& dim = array_.dim[d];
  const auto grid_dims = static_cast<int32_t>(grid_.dims());
  if (dim.grid_dim < -1 || dim.grid_dim >= grid_dims)
    throw Error(PW_OUT_OF_RANGE,
                format("dimension {} of {} is distributed over dimension {} of the grid, which has {}; "
                       "-1 is not distributed",
                       d, named(), dim.grid_dim, grid_dims));
  for (uint32_t other = 0; other < d; ++other)
    if (dim.grid_dim >= 0 && array_.dim[other].grid_dim == dim.grid_dim)
      throw Error(PW_INVALID_ARGUMENT,
                  format("dimensions {} and {} of {} are both distributed over dimension {} of the "
                         "grid; each needs its own",
                         other, d, named(), dim.grid_dim));
  if (dim.extent < parts(d))
    throw Error(PW_INVALID_ARGUMENT,
                format("dimension {} of {} has {} elements, distributed over {} processes; there must "
                       "be at least as many elements",
                       d, named(), dim.extent, parts(d)));
  if (dim.periodic > 1)
    throw Error(PW_INVALID_ARGUMENT,
                format("periodic is {} in dimension {} of {}; it must be 0 or 1", dim.periodic, d, named()));
}

void Distribution::check_shadow(uint32_t d) const {
  const pw_array_dim& dim = array_.dim[d];
  const uint32_t used = used_parts(dim.extent, parts(d));
  for (const Side side : {below, above}) {
    if (dim.width[side] > dim.shadow[side])
      throw Error(PW_INVALID_ARGUMENT,
                  format("width {} {} in dimension {} of {} is larger than its shadow, {}", dim.width[side],
                         name(side), d, named(), dim.shadow[side]));
    if (dim.width[side] == 0) continue;
    for (uint32_t i = 0; i < used; ++i) {
      const auto next = neighbour(used, i, side, dim.periodic != 0);
      if (!next) continue;
      const uint64_t count = block_of(dim.extent, parts(d), *next).count;
      if (dim.shadow[side] > count)
        throw Error(PW_INVALID_ARGUMENT,
                    format("a shadow of {} layers {} in dimension {} of {} is wider than the block of "
                           "the neighbour: part {} of {} has {} of {} elements; use fewer processes or a "
                           "narrower shadow",
                           dim.shadow[side], name(side), d, named(), *next, parts(d), count, dim.extent));
    }
  }
}

uint32_t Distribution::parts(uint32_t d) const {
  const int32_t over = array_.dim[d].grid_dim;
  return over < 0 ? 1 : grid_.extent(static_cast<uint32_t>(over));
}

uint32_t Distribution::index(uint32_t d, const Coordinates& at) const {
  const int32_t over = array_.dim[d].grid_dim;
  return over < 0 ? 0 : at[static_cast<size_t>(over)];
}

Counts Distribution::owned(const Coordinates& at) const {
  Counts counts{};
  for (uint32_t d = 0; d < dims(); ++d)
    counts[d] = block_of(array_.dim[d].extent, parts(d), index(d, at)).count;
  return counts;
}

bool Distribution::empty(const Coordinates& at) const {
  const Counts counts = owned(at);
  return std::find(counts.begin(), counts.begin() + dims(), 0) != counts.begin() + dims();
}

bool Distribution::step(Coordinates& at, uint32_t d, Side side) const {
  const pw_array_dim& dim = array_.dim[d];
  const auto next = neighbour(used_parts(dim.extent, parts(d)), index(d, at), side, dim.periodic != 0);
  if (!next) return false;
  if (dim.grid_dim >= 0) at[static_cast<size_t>(dim.grid_dim)] = *next;
  return true;
}

Counts Distribution::held(const Coordinates& at) const {
  Counts counts = owned(at);
  if (empty(at)) return Counts{};
  for (uint32_t d = 0; d < dims(); ++d) {
    for (const Side side : {below, above}) {
      if (shadow(d, side) > INT64_MAX - counts[d])
        throw Error(PW_OUT_OF_RANGE, format("{} elements and a shadow of {} {} in dimension {} of {} "
                                            "overflow 63 bits",
                                            counts[d], shadow(d, side), name(side), d, named()));
      counts[d] += shadow(d, side);
    }
  }
  return counts;
}

ArrayStrides Distribution::strides(const ArrayStrides& given, const Coordinates& at) const {
  const Counts counts = held(at);
  const bool dense = std::all_of(given.begin(), given.begin() + dims(), [](int64_t s) { return s == 0; });
  ArrayStrides strides = given;
  unsigned __int128 inner = element_bytes();  // bytes spanned by the dimensions handled so far
  std::array<uint32_t, PW_MAX_ARRAY_DIMS> order{};
  for (uint32_t d = 0; d < dims(); ++d) order[d] = dims() - 1 - d;
  if (!dense)
    std::stable_sort(order.begin(), order.begin() + dims(),
                     [&](uint32_t a, uint32_t b) { return given[a] < given[b]; });
  for (uint32_t i = 0; i < dims(); ++i) {
    const uint32_t d = order[i];
    if (dense) strides[d] = static_cast<int64_t>(inner);
    if (counts[d] > 1 && strides[d] <= 0)
      throw Error(PW_INVALID_ARGUMENT, format("stride {} in dimension {} of {}; strides must be positive",
                                              strides[d], d, named()));
    if (counts[d] > 1 && static_cast<unsigned __int128>(strides[d]) < inner)
      throw Error(PW_INVALID_ARGUMENT,
                  format("stride {} in dimension {} of {} is smaller than the {} bytes within it, so "
                         "that elements of {} bytes would overlap or interleave",
                         strides[d], d, named(), static_cast<uint64_t>(inner), element_bytes()));
    if (counts[d] > 1) inner += (counts[d] - 1) * static_cast<unsigned __int128>(strides[d]);
    if (inner > kLargestExtent)
      throw Error(PW_OUT_OF_RANGE, format("{} elements of {} bytes apart in dimension {} of {} go past "
                                          "63 bits",
                                          counts[d], strides[d], d, named()));
  }
  return strides;
}

uint64_t Distribution::extent_bytes(const ArrayStrides& strides, const Coordinates& at) const {
  const Counts counts = held(at);
  uint64_t bytes = counts[0] == 0 ? 0 : element_bytes();
  for (uint32_t d = 0; d < dims() && counts[0] > 0; ++d)
    bytes += (counts[d] - 1) * static_cast<uint64_t>(strides[d]);
  return bytes;
}

}  // namespace pw::array
