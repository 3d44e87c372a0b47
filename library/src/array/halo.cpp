#include "array/halo.h"

#include <algorithm>
#include <array>
#include <optional>

#include "array/face.h"
#include "base/format.h"
#include "base/status.h"

namespace pw::array {
namespace {

// The position of a halo for its receiver, in each dimension: -1 below, 0 beside what it owns, 1 above.
using Direction = std::array<int, PW_MAX_ARRAY_DIMS>;

Side side_of(int offset) { return offset < 0 ? below : above; }

/// Calls `body` for all directions of `dims` dimensions except the middle one. Faces have one offset, edges
/// and corners have several.
template <typename Body>
void for_each_direction(uint32_t dims, bool corners, Body body) {
  int all = 1;
  for (uint32_t d = 0; d < dims; ++d) all *= 3;
  for (int number = 0; number < all; ++number) {
    Direction direction{};
    int rest = number, offsets = 0;
    for (uint32_t d = dims; d-- > 0; rest /= 3) {
      direction[d] = rest % 3 - 1;
      offsets += direction[d] != 0 ? 1 : 0;
    }
    if (offsets == 1 || (corners && offsets > 1)) body(number, direction);
  }
}

/// The part of the array at one rank.
struct ArrayAtRank {
  int rank;
  Counts owned;
  ArrayStrides strides;
};

/// Finds the faces of one array that one rank sends and receives.
class ArrayFaces {
 public:
  ArrayFaces(const Distribution& array, uint32_t number, uint32_t arrays, const StridesOf& strides_of,
             int rank)
      : array_(array),
        number_(number),
        arrays_(arrays),
        strides_of_(strides_of),
        rank_(rank),
        at_(array.grid().coordinates(rank)) {}

  void add_to(Halo& halo, bool corners) const {
    if (array_.empty(at_)) return;
    for_each_direction(array_.dims(), corners, [&](int number, const Direction& direction) {
      if (!refreshed(direction)) return;
      if (const auto owner = walk(direction, false))
        add(halo.receives, number, direction, end(rank_), end(*owner), true);
      if (const auto receiver = walk(direction, true))
        add(halo.sends, number, direction, end(*receiver), end(rank_), false);
    });
  }

 private:
  [[nodiscard]] bool refreshed(const Direction& direction) const {
    for (uint32_t d = 0; d < array_.dims(); ++d)
      if (direction[d] != 0 && array_.width(d, side_of(direction[d])) == 0) return false;
    return true;
  }

  /// Returns the rank in that direction, or in the opposite direction.
  [[nodiscard]] std::optional<int> walk(const Direction& direction, bool backwards) const {
    Coordinates at = at_;
    for (uint32_t d = 0; d < array_.dims(); ++d) {
      const int offset = backwards ? -direction[d] : direction[d];
      if (offset != 0 && !array_.step(at, d, side_of(offset))) return std::nullopt;
    }
    return array_.grid().rank(at);
  }

  [[nodiscard]] ArrayAtRank end(int rank) const {
    return {rank, array_.owned(array_.grid().coordinates(rank)), strides_of_(rank, number_)};
  }

  void add(std::vector<Face>& list, int direction_number, const Direction& direction, const ArrayAtRank& to,
           const ArrayAtRank& from, bool receives) const {
    std::array<FaceDim, PW_MAX_ARRAY_DIMS> dims;
    uint64_t to_offset = 0, from_offset = 0;
    for (uint32_t d = 0; d < array_.dims(); ++d) {
      const Side side = side_of(direction[d]);
      const uint64_t first = array_.shadow(d, below), width = array_.width(d, side);
      uint64_t to_first = first, from_first = first, count = to.owned[d];
      if (direction[d] != 0) {
        count = width;
        // The halo is next to what the receiver owns; its source is the opposite end of what the owner has.
        to_first = side == below ? first - width : first + to.owned[d];
        from_first = side == below ? first + from.owned[d] - width : first;
      }
      dims[d] = {count, to.strides[d], from.strides[d]};
      to_offset += to_first * static_cast<uint64_t>(to.strides[d]);
      from_offset += from_first * static_cast<uint64_t>(from.strides[d]);
    }
    const CutFace face = cut_face({dims.data(), array_.dims()}, array_.element_bytes());
    for (size_t piece = 0; piece < face.pieces.size(); ++piece) {
      const auto& cut = face.pieces[piece];
      list.push_back({receives ? from.rank : to.rank, tag(direction_number, piece), number_,
                      block(face.layout, receives ? face.layout.to : face.layout.from,
                            receives ? to_offset + cut.to : from_offset + cut.from)});
    }
  }

  [[nodiscard]] int tag(int direction_number, size_t piece) const {
    constexpr uint64_t kDirections = 2187;  // of 7 dimensions
    const uint64_t tag = (piece * arrays_ + number_) * kDirections + static_cast<uint64_t>(direction_number);
    if (tag > INT32_MAX)
      throw Error(PW_UNSUPPORTED, format("array {} of {} has a face of over {} pieces, more than tags "
                                         "can name; use several plans",
                                         number_, arrays_, piece));
    return static_cast<int>(tag);
  }

  static pw_block block(const Layout& layout, const Strides& strides, uint64_t offset) {
    pw_block block{};
    block.offset = offset;
    block.block_bytes = layout.shape.block_bytes;
    block.dims = layout.shape.dims;
    std::copy(layout.shape.count.begin(), layout.shape.count.end(), block.count);
    std::copy(strides.begin(), strides.end(), block.stride);
    return block;
  }

  const Distribution& array_;
  uint32_t number_, arrays_;
  const StridesOf& strides_of_;
  int rank_;
  Coordinates at_;
};

}  // namespace

Halo halo_of(std::span<const Distribution> arrays, const StridesOf& strides_of, int rank, bool corners) {
  Halo halo;
  const auto count = static_cast<uint32_t>(arrays.size());
  for (uint32_t a = 0; a < count; ++a)
    ArrayFaces(arrays[a], a, count, strides_of, rank).add_to(halo, corners);
  return halo;
}

}  // namespace pw::array
