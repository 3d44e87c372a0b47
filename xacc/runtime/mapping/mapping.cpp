#include "xacc/runtime/mapping/mapping.h"

#include <algorithm>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

long size_of(const pwx_template_dim& dim) { return dim.last - dim.first + 1; }

/// One part of a dimension that is not cyclic.
Range interval(const pwx_template_dim& dim, int part) {
  switch (dim.kind) {
    case PWX_DUPLICATED:
      return {dim.first, dim.last};
    case PWX_BLOCK: {
      const long first = dim.first + part * dim.width;
      return {std::min(first, dim.last + 1), std::min(first + dim.width - 1, dim.last)};
    }
    case PWX_GBLOCK:
      return {dim.starts[part], dim.starts[part + 1] - 1};
    case PWX_CYCLIC:
      break;
  }
  return {dim.first, dim.last};
}

}  // namespace

Range common(Range a, Range b) { return {std::max(a.first, b.first), std::min(a.last, b.last)}; }

void settle(pwx_template_dim& dim, long asked_width, const std::string& named) {
  if (asked_width < 0) refuse(named, " has blocks of ", asked_width, "; they must be at least 1");
  const long size = size_of(dim);
  if (dim.kind == PWX_BLOCK) {
    dim.width = asked_width > 0 ? asked_width : std::max(divide_up(size, dim.parts), 1L);
    if (dim.width * dim.parts < size)
      refuse(named, " has ", size, " indices, but block(", asked_width, ") on ", dim.parts,
             " nodes holds only ", dim.width * dim.parts, "; use block(", divide_up(size, dim.parts),
             ") or block");
  } else if (dim.kind == PWX_CYCLIC) {
    dim.width = std::max(asked_width, 1L);
  } else if (dim.kind == PWX_GBLOCK && dim.starts[dim.parts] != dim.last + 1) {
    refuse(named, " has ", size, " indices, but the sizes of gblock add up to ",
           dim.starts[dim.parts] - dim.first, "; they must be the same");
  }
  const Range owned = dim.at < 0 ? Range{dim.first, dim.first - 1} : interval(dim, dim.at);
  dim.owned_first = owned.first;
  dim.owned_last = owned.last;
}

int owner_of(const pwx_template_dim& dim, long index) {
  const long from_0 = index - dim.first;
  switch (dim.kind) {
    case PWX_DUPLICATED:
      return 0;
    case PWX_BLOCK:
      return static_cast<int>(from_0 / dim.width);
    case PWX_CYCLIC:
      return static_cast<int>(from_0 / dim.width % dim.parts);
    case PWX_GBLOCK:
      break;
  }
  // The last part that starts at or before the index: earlier parts that start there, too, are empty.
  return static_cast<int>(std::upper_bound(dim.starts, dim.starts + dim.parts, index) - dim.starts) - 1;
}

std::vector<Range> owned_by(const pwx_template_dim& dim, int part) {
  std::vector<Range> ranges;
  if (dim.kind != PWX_CYCLIC) {
    if (const Range range = interval(dim, part); range.count() > 0) ranges.push_back(range);
    return ranges;
  }
  for (long first = dim.first + part * dim.width; first <= dim.last; first += dim.width * dim.parts)
    ranges.push_back({first, std::min(first + dim.width - 1, dim.last)});
  return ranges;
}

std::vector<Range> owned_subscripts(const pwx_array& a, int d, int part) {
  const pwx_array_dim& dim = a.dim[d];
  const Range all{0, dim.size - 1};
  const pwx_template_dim* t = template_dim(a, d);
  if (t == nullptr) return all.count() > 0 ? std::vector{all} : std::vector<Range>{};
  std::vector<Range> ranges;
  for (const Range of : owned_by(*t, part))
    if (const Range mine = common({of.first - dim.offset, of.last - dim.offset}, all); mine.count() > 0)
      ranges.push_back(mine);
  return ranges;
}

Placed place(const pwx_array& a, int d, int part) {
  const pwx_array_dim& dim = a.dim[d];
  const pwx_template_dim* t = template_dim(a, d);
  const auto ranges = part < 0 ? std::vector<Range>{} : owned_subscripts(a, d, part);
  Placed placed;
  if (!ranges.empty()) placed.owned = {ranges.front().first, ranges.back().last};
  if (is_full(dim)) {
    placed.ld = dim.size;
  } else if (t != nullptr && t->kind == PWX_CYCLIC) {
    placed.ld = divide_up(divide_up(size_of(*t), t->width), t->parts) * t->width;
  } else {
    placed.base = placed.owned.first - dim.shadow[0];
    placed.ld = dim.shadow[0] + dim.shadow[1];
    placed.ld += t == nullptr            ? dim.size
                 : t->kind == PWX_BLOCK  ? t->width
                 : t->kind == PWX_GBLOCK ? placed.owned.count()
                                         : dim.size;
  }
  placed.ld = std::max(placed.ld, 1L);
  return placed;
}

int owner_of_subscript(const pwx_array& a, int d, long subscript) {
  const pwx_template_dim* t = template_dim(a, d);
  return t == nullptr ? 0 : owner_of(*t, subscript + a.dim[d].offset);
}

long position(const pwx_array& a, int d, const Placed& placed, long subscript) {
  return is_cyclic(a, d) && !is_full(a.dim[d]) ? pwx_cyclic_local(&a, d, subscript) : subscript - placed.base;
}

Parts parts_at(const pwx_array& a, const int* coordinates) {
  Parts parts{};
  for (int d = 0; d < a.ndims; ++d) {
    const pwx_template_dim* t = template_dim(a, d);
    if (t != nullptr && t->nodes_dim >= 0) parts[static_cast<size_t>(d)] = coordinates[t->nodes_dim];
  }
  return parts;
}

std::array<int, PWX_MAX_DIMS> coordinates_of(const pwx_nodes& nodes, int number) {
  std::array<int, PWX_MAX_DIMS> at{};
  for (int d = 0; d < nodes.ndims; number /= nodes.size[d++])
    at[static_cast<size_t>(d)] = number % nodes.size[d];
  return at;
}

int number_of(const pwx_nodes& nodes, const int* coordinates) {
  int number = 0;
  for (int d = nodes.ndims; d-- > 0;) number = number * nodes.size[d] + coordinates[d];
  return number;
}

Strides strides_of(int ndims, const long* extents, size_t element_bytes) {
  Strides strides{};
  long next = static_cast<long>(element_bytes);
  for (int d = ndims; d-- > 0; next *= extents[d]) strides[static_cast<size_t>(d)] = next;
  return strides;
}

}  // namespace pwx
