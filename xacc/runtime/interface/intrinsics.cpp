// The transformational intrinsics of XcalableMP.
#include <algorithm>
#include <complex>
#include <cstdarg>
#include <cstring>
#include <type_traits>
#include <vector>

#define _XCALABLEMP 201411  // NOLINT(bugprone-reserved-identifier): as `peerway cc` defines it
#pragma GCC visibility push(default)
#include "peerway/xacc/xmp.h"
#pragma GCC visibility pop
#include "xacc/runtime/base/element_types.h"
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/interface/intrinsic_operands.h"

namespace pwx {
namespace {

void transpose(const pwx_array& to, const pwx_array& from) {
  check_rank("xmp_transpose", to, 2);
  check_rank("xmp_transpose", from, 2);
  check_extent("xmp_transpose", to, 0, from, 1);
  check_extent("xmp_transpose", to, 1, from, 0);
  check_elements("xmp_transpose", to, from);
  const Whole given = gather_whole(from);
  Whole target(to);
  for (long i = 0; i < to.dim[0].size; ++i)
    for (long j = 0; j < to.dim[1].size; ++j)
      std::memcpy(target.at(i * to.dim[1].size + j), given.at(j * to.dim[0].size + i), given.element);
  scatter_whole(to, target);
}

/// The subscripts of a dimension that this node owns.
std::vector<Range> owned(const pwx_array& a, int d) {
  const pwx_template_dim* t = template_dim(a, d);
  const int part = t == nullptr ? 0 : t->at;
  return part < 0 ? std::vector<Range>{} : owned_subscripts(a, d, part);
}

template <typename Value>
void multiply(const pwx_array& x, const Whole& lhs, const Whole& rhs, Whole& product) {
  const auto* const a = reinterpret_cast<const Value*>(lhs.bytes.data());
  const auto* const b = reinterpret_cast<const Value*>(rhs.bytes.data());
  auto* const to = reinterpret_cast<Value*>(product.bytes.data());
  const long inner = lhs.extents[1], columns = rhs.extents[1];
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
  const std::vector<char> chosen = mask_flags(function, shape, mask);
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
  const Whole lhs = gather_whole(a), rhs = gather_whole(b);
  Whole product(x);
  if (type == PWX_FLOAT_COMPLEX)
    multiply<std::complex<float>>(x, lhs, rhs, product);
  else if (type == PWX_DOUBLE_COMPLEX)
    multiply<std::complex<double>>(x, lhs, rhs, product);
  else
    ordered(type, function, [&](auto value) { multiply<decltype(value)>(x, lhs, rhs, product); });
  scatter_whole(x, product);
}

void sort_into(pwx_type type, const pwx_array& from, const pwx_array& to, bool up) {
  const char* const function = up ? "xmp_sort_up" : "xmp_sort_down";
  check_rank(function, from, 1);
  check_shape(function, from, to);
  check_elements(function, from, to);
  Whole values = gather_whole(from);
  ordered(type, function, [&](auto value) { sort<decltype(value)>(values, up); });
  scatter_whole(to, values);
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
    const Whole given = gather_whole(a);
    Whole values = gather_whole(v);
    each_chosen("xmp_pack", v, a, mask, [&](long number, long place) {
      std::memcpy(values.at(place), given.at(number), given.element);
    });
    scatter_whole(v, values);
  });
}

void xmp_unpack(xmp_desc_t to, xmp_desc_t from, xmp_desc_t mask) {
  guarded(&kIntrinsic, [&] {
    const pwx_array& a = array_at(to, "xmp_unpack");
    const pwx_array& v = array_at(from, "xmp_unpack");
    const Whole given = gather_whole(v);
    Whole values = gather_whole(a);
    each_chosen("xmp_unpack", v, a, mask, [&](long number, long place) {
      std::memcpy(values.at(number), given.at(place), given.element);
    });
    scatter_whole(a, values);
  });
}

void pwx_gather(void* to, void* from, void* const* indices, const long* first) {
  guarded(&kIntrinsic, [&] {
    const pwx_array& x = array_at(to, "xmp_gather");
    const pwx_array& a = array_at(from, "xmp_gather");
    check_elements("xmp_gather", x, a);
    const std::vector<long> sources = indexed_elements("xmp_gather", x, a, indices, first);
    const Whole given = gather_whole(a);
    Whole values(x);
    for (size_t i = 0; i < sources.size(); ++i)
      std::memcpy(values.at(static_cast<long>(i)), given.at(sources[i]), given.element);
    scatter_whole(x, values);
  });
}

void pwx_scatter(void* to, void* from, void* const* indices, const long* first) {
  guarded(&kIntrinsic, [&] {
    const pwx_array& x = array_at(to, "xmp_scatter");
    const pwx_array& a = array_at(from, "xmp_scatter");
    check_elements("xmp_scatter", x, a);
    const std::vector<long> targets = indexed_elements("xmp_scatter", a, x, indices, first);
    const Whole given = gather_whole(a);
    Whole values = gather_whole(x);
    for (size_t i = 0; i < targets.size(); ++i)
      std::memcpy(values.at(targets[i]), given.at(static_cast<long>(i)), given.element);
    scatter_whole(x, values);
  });
}

void xmp_gather(xmp_desc_t to, xmp_desc_t from, ...) {
  void* indices[PWX_MAX_DIMS]{};
  va_list rest;
  va_start(rest, from);
  for (int d = 0; from != nullptr && d < static_cast<const pwx_array*>(from)->ndims; ++d)
    indices[d] = va_arg(rest, void*);
  va_end(rest);
  pwx_gather(to, from, indices, nullptr);
}

void xmp_scatter(xmp_desc_t to, xmp_desc_t from, ...) {
  void* indices[PWX_MAX_DIMS]{};
  va_list rest;
  va_start(rest, from);
  for (int d = 0; to != nullptr && d < static_cast<const pwx_array*>(to)->ndims; ++d)
    indices[d] = va_arg(rest, void*);
  va_end(rest);
  pwx_scatter(to, from, indices, nullptr);
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
