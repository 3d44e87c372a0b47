// The transformational intrinsics of XcalableMP. Each node gets the whole operands and keeps its part of the
// result, so operands may have any mapping, and each node needs memory for all of them.
#include <algorithm>
#include <complex>
#include <cstdarg>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#define _XCALABLEMP 201411  // NOLINT(bugprone-reserved-identifier): as `peerway cc` defines it
#pragma GCC visibility push(default)
#include "peerway/xacc/xmp.h"
#pragma GCC visibility pop
#include "xacc/runtime/base/element_types.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"

namespace pwx {
namespace {

const pwx_where kIntrinsic{"xmp", 0};

/// All elements of an array at this node, in C order.
struct Whole {
  std::vector<long> extents;
  size_t element = 1;
  std::vector<char> bytes;

  explicit Whole(const pwx_array& a) : element(a.element_bytes) {
    for (int d = 0; d < a.ndims; ++d) extents.push_back(a.dim[d].size);
    bytes.resize(static_cast<size_t>(count()) * element);
  }
  long count() const { return std::accumulate(extents.begin(), extents.end(), 1L, std::multiplies<>()); }
  char* at(long i) { return bytes.data() + static_cast<size_t>(i) * element; }
  const char* at(long i) const { return bytes.data() + static_cast<size_t>(i) * element; }
};

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

const pwx_array& array_at(xmp_desc_t desc, const char* function) {
  if (desc == nullptr) refuse(function, " got no array; write xmp_desc_of(name) of a distributed array");
  return *static_cast<const pwx_array*>(desc);
}

Whole all_of(const pwx_array& a) {
  Whole whole(a);
  const pwx_section to = section_of(&a, whole, false), from = section_of(&a, whole, true);
  pwx_gmove(PWX_COLLECTIVE, &to, &from, &kIntrinsic);
  return whole;
}

void keep(const pwx_array& a, Whole& whole) {
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
    refuse(function, ": dimension ", d, " of ", a.name, " has ", a.dim[d].size, " elements, dimension ", e,
           " of ", b.name, " ", b.dim[e].size, "; they must be equal");
}
void check_shape(const char* function, const pwx_array& a, const pwx_array& b) {
  check_rank(function, b, a.ndims);
  for (int d = 0; d < a.ndims; ++d) check_extent(function, a, d, b, d);
}

/// Whether each element of a mask is true.
std::vector<char> truths(const char* function, const pwx_array& shape, xmp_desc_t mask) {
  Whole of_shape(shape);
  std::vector<char> flags(static_cast<size_t>(of_shape.count()), 1);
  if (mask == nullptr) return flags;
  const pwx_array& m = array_at(mask, function);
  check_shape(function, shape, m);
  const Whole values = all_of(m);
  for (size_t i = 0; i < flags.size(); ++i) {
    const char* const value = values.at(static_cast<long>(i));
    flags[i] = std::any_of(value, value + values.element, [](char byte) { return byte != 0; });
  }
  return flags;
}

/// The numbers of the elements that index arrays of one shape select in an array: one index array for each
/// dimension.
std::vector<long> named(const char* function, const pwx_array& shape, const pwx_array& indexed,
                        va_list indices) {
  const long count = Whole(shape).count();
  std::vector<long> order(static_cast<size_t>(count), 0);
  for (int d = 0; d < indexed.ndims; ++d) {
    const pwx_array& index = array_at(va_arg(indices, xmp_desc_t), function);
    check_shape(function, shape, index);
    if (index.element_bytes != sizeof(int)) refuse(function, ": ", index.name, " must be an array of int");
    const Whole values = all_of(index);
    for (long i = 0; i < count; ++i) {
      int value = 0;
      std::memcpy(&value, values.at(i), sizeof value);
      if (value < 0 || value >= indexed.dim[d].size)
        refuse(function, ": ", index.name, " names element ", value, " of dimension ", d, " of ",
               indexed.name, ", which has 0 to ", indexed.dim[d].size - 1);
      order[static_cast<size_t>(i)] = order[static_cast<size_t>(i)] * indexed.dim[d].size + value;
    }
  }
  return order;
}

void transpose(const pwx_array& to, const pwx_array& from) {
  check_rank("xmp_transpose", to, 2);
  check_rank("xmp_transpose", from, 2);
  check_extent("xmp_transpose", to, 0, from, 1);
  check_extent("xmp_transpose", to, 1, from, 0);
  check_elements("xmp_transpose", to, from);
  const Whole given = all_of(from);
  Whole target(to);
  for (long i = 0; i < to.dim[0].size; ++i)
    for (long j = 0; j < to.dim[1].size; ++j)
      std::memcpy(target.at(i * to.dim[1].size + j), given.at(j * to.dim[0].size + i), given.element);
  keep(to, target);
}

/// The subscripts of a dimension that this node owns.
std::vector<Range> owned(const pwx_array& a, int d) {
  const pwx_template_dim* t = template_dim(a, d);
  const int part = t == nullptr ? 0 : t->at;
  return part < 0 ? std::vector<Range>{} : owned_subscripts(a, d, part);
}

template <typename Value>
void multiply(const pwx_array& x, const Whole& left, const Whole& right, Whole& product) {
  const auto* const a = reinterpret_cast<const Value*>(left.bytes.data());
  const auto* const b = reinterpret_cast<const Value*>(right.bytes.data());
  auto* const to = reinterpret_cast<Value*>(product.bytes.data());
  const long inner = left.extents[1], columns = right.extents[1];
  for (const Range& rows : owned(x, 0))
    for (long i = rows.first; i <= rows.last; ++i)
      for (long k = 0; k < inner; ++k)
        for (const Range& mine : owned(x, 1))
          for (long j = mine.first; j <= mine.last; ++j)
            to[i * columns + j] =
                static_cast<Value>(to[i * columns + j] + a[i * inner + k] * b[k * columns + j]);
}

template <typename Value>
void sort(Whole& values, bool up) {
  auto* const first = reinterpret_cast<Value*>(values.bytes.data());
  std::stable_sort(first, first + values.count(), [up](const Value& earlier, const Value& other) {
    return up ? earlier < other : other < earlier;
  });
}

/// Calls `with` with a value of the type, if the type has an order. Throws Failure otherwise.
template <typename With>
void ordered(pwx_type type, const char* function, With&& with) {
  for_type(type, [&]<typename Value>(Value value) {
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>)
      with(value);
    else
      refuse(function, " is not defined for elements of this type");
  });
}

/// Calls `move(number, place)` for each element that a mask chooses: its number in the array, and its place
/// in a vector of the chosen elements.
template <typename Move>
void each_chosen(const char* function, const pwx_array& vector, const pwx_array& shape, xmp_desc_t mask,
                 Move&& move) {
  check_rank(function, vector, 1);
  check_elements(function, vector, shape);
  const std::vector<char> chosen = truths(function, shape, mask);
  long next = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == 0) continue;
    if (next == vector.dim[0].size)
      refuse(function, ": the mask chooses more than the ", next, " elements that ", vector.name, " has");
    move(static_cast<long>(i), next++);
  }
}

void matmul(pwx_type type, const pwx_array& x, const pwx_array& a, const pwx_array& b) {
  const char* const function = "xmp_matmul";
  for (const pwx_array* operand : {&x, &a, &b}) {
    check_rank(function, *operand, 2);
    check_elements(function, x, *operand);
  }
  check_extent(function, x, 0, a, 0);
  check_extent(function, x, 1, b, 1);
  check_extent(function, a, 1, b, 0);
  const Whole left = all_of(a), right = all_of(b);
  Whole product(x);
  if (type == PWX_FLOAT_COMPLEX)
    multiply<std::complex<float>>(x, left, right, product);
  else if (type == PWX_DOUBLE_COMPLEX)
    multiply<std::complex<double>>(x, left, right, product);
  else
    ordered(type, function, [&](auto value) { multiply<decltype(value)>(x, left, right, product); });
  keep(x, product);
}

void sort_into(pwx_type type, const pwx_array& from, const pwx_array& to, bool up) {
  const char* const function = up ? "xmp_sort_up" : "xmp_sort_down";
  check_rank(function, from, 1);
  check_shape(function, from, to);
  check_elements(function, from, to);
  Whole values = all_of(from);
  ordered(type, function, [&](auto value) { sort<decltype(value)>(values, up); });
  keep(to, values);
}

}  // namespace
}  // namespace pwx

using namespace pwx;  // NOLINT(google-build-using-namespace): all below is C

extern "C" {

void pwx_matmul(pwx_type type, void* x, void* a, void* b) {
  guarded(&kIntrinsic, [&] {
    matmul(type, array_at(x, "xmp_matmul"), array_at(a, "xmp_matmul"), array_at(b, "xmp_matmul"));
  });
}

void pwx_sort(pwx_type type, void* from, void* to, int up) {
  const char* const function = up != 0 ? "xmp_sort_up" : "xmp_sort_down";
  guarded(&kIntrinsic, [&] { sort_into(type, array_at(from, function), array_at(to, function), up != 0); });
}

void xmp_transpose(xmp_desc_t to, xmp_desc_t from, int) {
  guarded(&kIntrinsic, [&] { transpose(array_at(to, "xmp_transpose"), array_at(from, "xmp_transpose")); });
}

void xmp_pack(xmp_desc_t to, xmp_desc_t from, xmp_desc_t mask) {
  guarded(&kIntrinsic, [&] {
    const pwx_array& v = array_at(to, "xmp_pack");
    const pwx_array& a = array_at(from, "xmp_pack");
    const Whole given = all_of(a);
    Whole values = all_of(v);
    each_chosen("xmp_pack", v, a, mask, [&](long number, long place) {
      std::memcpy(values.at(place), given.at(number), given.element);
    });
    keep(v, values);
  });
}

void xmp_unpack(xmp_desc_t to, xmp_desc_t from, xmp_desc_t mask) {
  guarded(&kIntrinsic, [&] {
    const pwx_array& a = array_at(to, "xmp_unpack");
    const pwx_array& v = array_at(from, "xmp_unpack");
    const Whole given = all_of(v);
    Whole values = all_of(a);
    each_chosen("xmp_unpack", v, a, mask, [&](long number, long place) {
      std::memcpy(values.at(number), given.at(place), given.element);
    });
    keep(a, values);
  });
}

void xmp_gather(xmp_desc_t to, xmp_desc_t from, ...) {
  va_list indices;
  va_start(indices, from);
  guarded(&kIntrinsic, [&] {
    const pwx_array& x = array_at(to, "xmp_gather");
    const pwx_array& a = array_at(from, "xmp_gather");
    check_elements("xmp_gather", x, a);
    const std::vector<long> sources = named("xmp_gather", x, a, indices);
    const Whole given = all_of(a);
    Whole values(x);
    for (size_t i = 0; i < sources.size(); ++i)
      std::memcpy(values.at(static_cast<long>(i)), given.at(sources[i]), given.element);
    keep(x, values);
  });
  va_end(indices);
}

void xmp_scatter(xmp_desc_t to, xmp_desc_t from, ...) {
  va_list indices;
  va_start(indices, from);
  guarded(&kIntrinsic, [&] {
    const pwx_array& x = array_at(to, "xmp_scatter");
    const pwx_array& a = array_at(from, "xmp_scatter");
    check_elements("xmp_scatter", x, a);
    const std::vector<long> targets = named("xmp_scatter", a, x, indices);
    const Whole given = all_of(a);
    Whole values = all_of(x);
    for (size_t i = 0; i < targets.size(); ++i)
      std::memcpy(values.at(targets[i]), given.at(static_cast<long>(i)), given.element);
    keep(x, values);
  });
  va_end(indices);
}

// `peerway cc` puts the type into a call whose first array it sees by name; in other calls it is unknown.
void xmp_matmul(xmp_desc_t, xmp_desc_t, xmp_desc_t) {
  guarded(&kIntrinsic, [] { refuse("xmp_matmul needs the name of its array: xmp_desc_of(name)"); });
}
void xmp_sort_up(xmp_desc_t, xmp_desc_t) {
  guarded(&kIntrinsic, [] { refuse("xmp_sort_up needs the name of its array: xmp_desc_of(name)"); });
}
void xmp_sort_down(xmp_desc_t, xmp_desc_t) {
  guarded(&kIntrinsic, [] { refuse("xmp_sort_down needs the name of its array: xmp_desc_of(name)"); });
}

}  // extern "C"
