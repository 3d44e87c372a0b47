#include "xacc/runtime/interface/intrinsic_operands.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

pwx_section section_of(const pwx_array* a, Whole& whole, bool distributed) {
  pwx_section out{};
  out.ndims = static_cast<int>(whole.extents.size());
  if (distributed) out.array = a;
  if (!distributed) {
    out.base = whole.bytes.data();
    out.element_bytes = whole.element;
  }
  for (int d = 0; d < out.ndims; ++d) {
    out.extent[d] = whole.extents[static_cast<size_t>(d)];
    out.dim[d] = {0, out.extent[d], 1, 0};
  }
  return out;
}

long integer_at(const Whole& values, long i) {
  if (values.element == sizeof(int64_t)) {
    int64_t wide = 0;
    std::memcpy(&wide, values.at(i), sizeof wide);
    return wide;
  }
  int32_t narrow = 0;
  std::memcpy(&narrow, values.at(i), sizeof narrow);
  return narrow;
}

}  // namespace

const pwx_where kIntrinsic{"xmp", 0};

Whole::Whole(const pwx_array& a) : element(a.element_bytes) {
  for (int d = 0; d < a.ndims; ++d) extents.push_back(a.dim[d].size);
  bytes.resize(static_cast<size_t>(count()) * element);
}

long Whole::count() const { return std::accumulate(extents.begin(), extents.end(), 1L, std::multiplies<>()); }

const pwx_array& array_at(void* desc, const char* function) {
  if (desc == nullptr) refuse(function, " got no array; write xmp_desc_of(name) of a distributed array");
  return *static_cast<const pwx_array*>(desc);
}

Whole gather_whole(const pwx_array& a) {
  Whole whole(a);
  const pwx_section to = section_of(&a, whole, false), from = section_of(&a, whole, true);
  pwx_gmove(PWX_COLLECTIVE, &to, &from, &kIntrinsic);
  return whole;
}

void scatter_whole(const pwx_array& a, Whole& whole) {
  const pwx_section to = section_of(&a, whole, true), from = section_of(&a, whole, false);
  pwx_gmove(PWX_COLLECTIVE, &to, &from, &kIntrinsic);
}

void check_elements(const char* function, const pwx_array& a, const pwx_array& other) {
  if (a.element_bytes != other.element_bytes)
    refuse(function, ": elements of ", a.name, " have ", a.element_bytes, " bytes, those of ", other.name,
           " ", other.element_bytes, "; both arrays need the same type");
}
void check_rank(const char* function, const pwx_array& a, int rank) {
  if (a.ndims != rank) refuse(function, ": ", a.name, " has ", a.ndims, " dimensions, and needs ", rank);
}
void check_extent(const char* function, const pwx_array& a, int d, const pwx_array& b, int e) {
  if (a.dim[d].size != b.dim[e].size)
    refuse(function, ": dimension ", spoken_dimension(a, d), " of ", a.name, " has ", a.dim[d].size,
           " elements, dimension ", spoken_dimension(b, e), " of ", b.name, " ", b.dim[e].size,
           "; they must be equal");
}
void check_shape(const char* function, const pwx_array& a, const pwx_array& b) {
  check_rank(function, b, a.ndims);
  for (int d = 0; d < a.ndims; ++d) check_extent(function, a, d, b, d);
}

std::vector<char> mask_flags(const char* function, const pwx_array& shape, void* mask) {
  Whole of_shape(shape);
  std::vector<char> flags(static_cast<size_t>(of_shape.count()), 1);
  if (mask == nullptr) return flags;
  const pwx_array& m = array_at(mask, function);
  check_shape(function, shape, m);
  const Whole values = gather_whole(m);
  for (size_t i = 0; i < flags.size(); ++i) {
    const char* const value = values.at(static_cast<long>(i));
    flags[i] = std::any_of(value, value + values.element, [](char byte) { return byte != 0; });
  }
  return flags;
}

std::vector<long> indexed_elements(const char* function, const pwx_array& shape, const pwx_array& indexed,
                                   void* const* indices, const long* first) {
  const long count = Whole(shape).count();
  std::vector<long> elements(static_cast<size_t>(count), 0);
  for (int d = 0; d < indexed.ndims; ++d) {
    const pwx_array& index = array_at(indices[d], function);
    check_shape(function, shape, index);
    if (index.element_bytes != sizeof(int32_t) && index.element_bytes != sizeof(int64_t))
      refuse(function, ": ", index.name, " must be an array of integers of 4 or 8 bytes");
    const Whole values = gather_whole(index);
    const long base = first == nullptr ? 0 : first[d];
    for (long i = 0; i < count; ++i) {
      const long value = integer_at(values, i) - base;
      if (value < 0 || value >= indexed.dim[d].size)
        refuse(function, ": ", index.name, " names element ", value + base, " of dimension ",
               first == nullptr ? d : indexed.ndims - d, " of ", indexed.name, ", which has ", base, " to ",
               base + indexed.dim[d].size - 1);
      elements[static_cast<size_t>(i)] = elements[static_cast<size_t>(i)] * indexed.dim[d].size + value;
    }
  }
  return elements;
}

}  // namespace pwx
