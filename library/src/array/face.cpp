#include "array/face.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/status.h"

namespace pw::array {
namespace {

// Whether all of the inner dimension equals one step of the outer. Uses 128 bits, so that the product always
// fits.
bool continues(uint64_t count, int64_t stride, int64_t outer) {
  return static_cast<__int128>(count) * stride == outer;
}

// Returns the dimensions sorted by the target's strides, slowest first, without those of one element, and
// merged where both ends allow it.
std::vector<FaceDim> merged(std::span<const FaceDim> dims, uint64_t& block_bytes) {
  std::vector<FaceDim> list;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(list),
               [](const FaceDim& d) { return d.count > 1; });
  std::stable_sort(list.begin(), list.end(), [](const FaceDim& a, const FaceDim& b) {
    return std::tie(a.to, a.from) > std::tie(b.to, b.from);
  });
  for (size_t d = list.size(); d-- > 1;) {
    FaceDim& inner = list[d];
    const FaceDim& outer = list[d - 1];
    if (!continues(inner.count, inner.to, outer.to) || !continues(inner.count, inner.from, outer.from))
      continue;
    inner.count *= outer.count;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(d) - 1);
  }
  const auto block = static_cast<int64_t>(block_bytes);
  if (!list.empty() && list.back().to == block && list.back().from == block) {
    block_bytes *= list.back().count;
    list.pop_back();
  }
  return list;
}

// Removes the dimension with the fewest elements from the list and returns it.
FaceDim take_shortest(std::vector<FaceDim>& list) {
  const auto shortest = std::min_element(
      list.begin(), list.end(), [](const FaceDim& a, const FaceDim& b) { return a.count < b.count; });
  const FaceDim taken = *shortest;
  list.erase(shortest);
  return taken;
}

}  // namespace

CutFace cut_face(std::span<const FaceDim> dims, uint64_t element_bytes) {
  CutFace face;
  face.layout.shape.block_bytes = element_bytes;
  std::vector<FaceDim> list = merged(dims, face.layout.shape.block_bytes);
  face.pieces.push_back({});
  while (list.size() > PW_MAX_DIMS) {
    const FaceDim cut = take_shortest(list);
    if (cut.count > kMaxPieces / face.pieces.size())
      throw Error(
          PW_UNSUPPORTED,
          format("a face that lies in {} strided dimensions would be cut into {} times {} "
                 "pieces, over {}; make more of its dimensions contiguous, or their order the same on "
                 "both ranks",
                 list.size() + 1, cut.count, face.pieces.size(), kMaxPieces));
    std::vector<CutFace::Piece> pieces;
    pieces.reserve(face.pieces.size() * cut.count);
    for (const auto& piece : face.pieces)
      for (uint64_t i = 0; i < cut.count; ++i)
        pieces.push_back(
            {piece.to + i * static_cast<uint64_t>(cut.to), piece.from + i * static_cast<uint64_t>(cut.from)});
    face.pieces = std::move(pieces);
  }
  face.layout.shape.dims = static_cast<uint32_t>(list.size());
  for (size_t d = 0; d < list.size(); ++d) {
    face.layout.shape.count[d] = list[d].count;
    face.layout.to[d] = list[d].to;
    face.layout.from[d] = list[d].from;
  }
  return face;
}

}  // namespace pw::array
