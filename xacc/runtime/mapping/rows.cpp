#include "xacc/runtime/mapping/rows.h"

#include <algorithm>
#include <array>

#include "peerway/xacc/loops.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"
#include "xacc/runtime/mapping/sections.h"

namespace pwx {
namespace {

/// The wanted subscripts in this node's memory, where they are contiguous even in a cyclic dimension.
pwx_triplet here(const pwx_array& a, int d, const pwx_triplet& wanted, const char* name) {
  const pwx_array_dim& dim = a.dim[d];
  const long below = is_full(dim) ? 0 : dim.shadow[0], above = is_full(dim) ? 0 : dim.shadow[1];
  if (wanted.count > 0 && (wanted.first < -below || wanted.first + wanted.count > dim.size + above))
    refuse("subscripts ", spoken(a, d, wanted.first), " to ", spoken(a, d, wanted.first + wanted.count - 1),
           " in dimension ", spoken_dimension(a, d), " of ", name, ", which has ", spoken(a, d, 0), " to ",
           spoken(a, d, dim.size - 1));
  long first = wanted.first, end = wanted.first + std::max(wanted.count, 0L);
  if (is_cyclic(a, d)) {
    const pwx_cycle cycle = pwx_cycle_of(a.on, dim.template_dim, dim.offset);
    first = pwx_before(cycle, first);
    end = pwx_before(cycle, end);
  } else {
    first -= dim.base;
    end -= dim.base;
  }
  first = std::clamp(first, 0L, dim.ld);
  end = std::clamp(end, first, dim.ld);
  return {first, end - first, 1, 0};
}

SectionLayout laid_here(const pwx_section& section, const char* name) {
  if (section.array == nullptr)
    return layout_of(section.ndims, section.extent, section.element_bytes, section.dim, name);
  const pwx_array& a = *section.array;
  std::array<pwx_triplet, PWX_MAX_DIMS> dims{};
  std::array<long, PWX_MAX_DIMS> extents{};
  for (int d = 0; d < a.ndims; ++d) {
    const auto at = static_cast<size_t>(d);
    dims[at] = here(a, d, section.dim[d], name);
    extents[at] = a.dim[d].ld;
  }
  return layout_of(a.ndims, extents.data(), a.element_bytes, dims.data(), name);
}

}  // namespace

std::vector<Row> rows_of(const pwx_section& section, const char* name) {
  SectionLayout layout = laid_here(section, name);
  auto bytes = static_cast<long>(layout.element_bytes);
  while (!layout.counts.empty() && layout.strides.back() == bytes) {
    bytes *= layout.counts.back();
    layout.counts.pop_back();
    layout.strides.pop_back();
  }
  std::vector<Row> rows;
  if (bytes > 0)
    each_element_of(layout, [&](long offset) {
      rows.push_back({static_cast<size_t>(offset), static_cast<size_t>(bytes)});
    });
  return rows;
}

}  // namespace pwx
