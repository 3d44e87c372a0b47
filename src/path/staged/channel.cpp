#include "path/staged/channel.h"

namespace pw {

Copy chunk_copy(const Chunk& chunk, std::byte* bytes, std::byte* region, bool fill, bool region_is_to) {
  const Strides dense = dense_strides(chunk.layout.shape);
  const Strides& strides = region_is_to ? chunk.layout.to : chunk.layout.from;
  std::byte* place = region + (region_is_to ? chunk.to_offset : chunk.from_offset);
  Copy copy;
  copy.layout.shape = chunk.layout.shape;
  copy.to = fill ? bytes : place;
  copy.from = fill ? place : bytes;
  copy.layout.to = fill ? dense : strides;
  copy.layout.from = fill ? strides : dense;
  return copy;
}

}  // namespace pw
