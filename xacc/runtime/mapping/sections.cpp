#include "xacc/runtime/mapping/sections.h"

#include <algorithm>
#include <cstring>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"

namespace pwx {

SectionLayout layout_of(int ndims, const long* extents, size_t element_bytes, const pwx_triplet* dims,
                        const char* name) {
  SectionLayout layout;
  layout.element_bytes = element_bytes;
  const Strides strides = strides_of(ndims, extents, element_bytes);
  for (int d = 0; d < ndims; ++d) {
    const pwx_triplet& t = dims[d];
    const bool index = t.is_index != 0;
    if (!index && t.count == 0) {
      layout.counts.push_back(0);
      layout.strides.push_back(0);
      continue;
    }
    const long last = index ? t.first : t.first + (t.count - 1) * t.step;
    if (std::min(t.first, last) < 0 || std::max(t.first, last) >= extents[d])
      refuse("subscripts ", t.first, " to ", last, " in dimension ", d, " of ", name, ", which has 0 to ",
             extents[d] - 1);
    const long stride = strides[static_cast<size_t>(d)];
    layout.offset += t.first * stride;
    if (index) continue;
    layout.counts.push_back(t.count);
    layout.strides.push_back(t.step * stride);
  }
  return layout;
}

void pack(std::byte* to, const std::byte* from, const SectionLayout& layout) {
  each_element_of(layout, [&](long offset) {
    std::memcpy(to, from + offset, layout.element_bytes);
    to += layout.element_bytes;
  });
}

void unpack(std::byte* to, const std::byte* from, const SectionLayout& layout) {
  each_element_of(layout, [&](long offset) {
    std::memcpy(to + offset, from, layout.element_bytes);
    from += layout.element_bytes;
  });
}

SectionLayout packed_as(const SectionLayout& layout, size_t at) {
  SectionLayout packed = layout;
  packed.offset = static_cast<long>(at);
  long stride = static_cast<long>(layout.element_bytes);
  for (size_t d = layout.counts.size(); d-- > 0; stride *= layout.counts[d]) packed.strides[d] = stride;
  return packed;
}

std::vector<BlockPair> blocks_between(const SectionLayout& there, const SectionLayout& here) {
  const auto bytes = static_cast<long>(there.element_bytes);
  const auto falls = [](const SectionLayout& layout) {
    return std::ranges::any_of(layout.strides, [](long stride) { return stride < 0; });
  };
  if (there.counts == here.counts && !falls(there) && !falls(here)) {
    std::vector<BoxDim> dims(there.counts.size());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = {there.counts[d], there.strides[d], here.strides[d]};
    return blocks_of(dims, bytes, there.offset, here.offset);
  }
  std::vector<long> to, from;
  each_element_of(there, [&](long offset) { to.push_back(offset); });
  each_element_of(here, [&](long offset) { from.push_back(offset); });
  std::vector<BlockPair> blocks;
  for (size_t i = 0; i < std::max(to.size(), from.size()); ++i)
    blocks.push_back(
        blocks_of({}, bytes, to[i % to.size()], from[i % from.size()]).front());  // one side may be a scalar
  return blocks;
}

}  // namespace pwx
