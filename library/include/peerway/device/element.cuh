// Elements and how they are combined, the same on GPUs and on CPUs: the operands of an element are combined
// in the order of the ranks, so all ranks get the same bits in every run.
#ifndef PEERWAY_DEVICE_ELEMENT_CUH
#define PEERWAY_DEVICE_ELEMENT_CUH

#include "peerway/device/memory.cuh"

namespace peerway::device {

/// The types of elements, with the numbers of pw_element.
enum class Element : unsigned {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2
};

/// How two elements are combined, with the numbers of pw_reduction.
enum class Combine : unsigned { sum, min, max, prod, bit_and, bit_or };

/// The floating-point types of 8 and 16 bits. They are combined as float, and rounded once at the end.
struct Float16 {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};
struct Float8E4M3 {
  unsigned char bits;
};
struct Float8E5M2 {
  unsigned char bits;
};

/// Combines `count` elements of each of `sources` ranks. The operand of rank number `own` is at `local`;
/// those of the other ranks follow one another from `others` on, `stride` bytes apart.
struct Reduction {
  Element element;
  Combine combine;
  unsigned sources;
  unsigned own;
  Word count;
  Word stride;
  unsigned char* to;
  const unsigned char* local;
  const unsigned char* others;
};

namespace detail {

#if defined(PW_ON_NVIDIA)

PW_ON_DEVICE float float_with(unsigned bits) { return __uint_as_float(bits); }
PW_ON_DEVICE unsigned bits_of(float value) { return __float_as_uint(value); }
PW_ON_DEVICE float widened(Float16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
PW_ON_DEVICE Float16 rounded(float value, Float16) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return {bits};
}

#else

PW_ON_DEVICE float float_with(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
PW_ON_DEVICE unsigned bits_of(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
// A half has 5 bits of exponent, a float 8. Multiplying by 2^112 moves the exponent, and makes normal numbers
// of subnormal ones.
PW_ON_DEVICE float widened(Float16 value) {
  const unsigned magnitude = (value.bits & 0x7fffu) << 13;
  const unsigned sign = (value.bits & 0x8000u) << 16;
  const bool special = magnitude >= 0x0f800000u;  // an infinity or a NaN
  const unsigned wide = special ? magnitude | 0x7f800000u : bits_of(float_with(magnitude) * 0x1p112f);
  return float_with(wide | sign);
}
// Rounds to the nearest half, ties to even. Subnormal halves are multiples of the distance between floats
// just above 0.5, so adding 0.5 rounds to them.
PW_ON_DEVICE Float16 rounded(float value, Float16) {
  const unsigned sign = bits_of(value) >> 16 & 0x8000u;
  const unsigned magnitude = bits_of(value) & 0x7fffffffu;
  const unsigned subnormal = bits_of(float_with(magnitude) + 0.5f) - 0x3f000000u;
  const unsigned normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1u)) >> 13;
  unsigned bits = magnitude < 0x38800000u ? subnormal : normal;
  if (magnitude >= 0x47800000u) bits = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return {static_cast<unsigned short>(bits | sign)};
}

#endif

PW_ON_DEVICE float widened(BFloat16 value) { return float_with(static_cast<unsigned>(value.bits) << 16); }
PW_ON_DEVICE BFloat16 rounded(float value, BFloat16) {
  const unsigned bits = bits_of(value);
  const unsigned nearest = bits + 0x7fffu + (bits >> 16 & 1u);  // ties to even
  return {static_cast<unsigned short>((value != value ? bits | 0x400000u : nearest) >> 16)};
}

// Where the exponent is 0, the number is a multiple of the smallest one, 2^-9.
PW_ON_DEVICE float widened(Float8E4M3 value) {
  const unsigned sign = (value.bits & 0x80u) << 24, exponent = value.bits >> 3 & 15u,
                 fraction = value.bits & 7u;
  const float multiple = static_cast<float>(fraction) * 0x1p-9f;
  const unsigned magnitude = exponent == 0 ? bits_of(multiple) : (exponent + 120u) << 23 | fraction << 20;
  return float_with(sign | (exponent == 15 && fraction == 7 ? 0x7fc00000u : magnitude));
}
// These are the upper bits of a half.
PW_ON_DEVICE float widened(Float8E5M2 value) {
  return widened(Float16{static_cast<unsigned short>(value.bits << 8)});
}

/// Rounds the magnitude of a number to the nearest with `Fraction` bits of fraction, ties to even. Numbers
/// below 2^(1 - Bias) are multiples of the smallest one, which is the distance between floats just above
/// 2^(24 - Bias - Fraction); adding that float rounds to them. The upper bits of the result are the exponent,
/// which may be larger than the type has.
template <unsigned Fraction, unsigned Bias>
PW_ON_DEVICE unsigned rounded_magnitude(unsigned magnitude) {
  constexpr unsigned kDropped = 23 - Fraction, kBiases = (127 - Bias) << 23;
  constexpr unsigned kAdded = (127 + 24 - Bias - Fraction) << 23;
  if (magnitude < kBiases + (1u << 23)) return bits_of(float_with(magnitude) + float_with(kAdded)) - kAdded;
  return (magnitude - kBiases + (1u << (kDropped - 1)) - 1 + (magnitude >> kDropped & 1u)) >> kDropped;
}
// What is too large becomes a NaN: there are no infinities.
PW_ON_DEVICE Float8E4M3 rounded(float value, Float8E4M3) {
  const unsigned magnitude = bits_of(value) & 0x7fffffffu;
  const unsigned bits = magnitude >= 0x44000000u ? 0x7fu : rounded_magnitude<3, 7>(magnitude);
  return {static_cast<unsigned char>((bits < 0x7fu ? bits : 0x7fu) | (bits_of(value) >> 24 & 0x80u))};
}
PW_ON_DEVICE Float8E5M2 rounded(float value, Float8E5M2) {
  const unsigned magnitude = bits_of(value) & 0x7fffffffu;
  const unsigned finite = magnitude >= 0x48000000u ? 0x7cu : rounded_magnitude<2, 15>(magnitude);
  const unsigned bits = magnitude > 0x7f800000u ? 0x7fu : finite < 0x7cu ? finite : 0x7cu;
  return {static_cast<unsigned char>(bits | (bits_of(value) >> 24 & 0x80u))};
}

// Other types are combined as they are.
template <class T>
PW_ON_DEVICE T widened(T value) {
  return value;
}
template <class T>
PW_ON_DEVICE T rounded(T value, T) {
  return value;
}

/// The type in which elements of type T are combined.
template <class T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<Float16> {
  using Type = float;
};
template <>
struct Wide<BFloat16> {
  using Type = float;
};
template <>
struct Wide<Float8E4M3> {
  using Type = float;
};
template <>
struct Wide<Float8E5M2> {
  using Type = float;
};

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};

// Sums and products of integers wrap around, which only unsigned arithmetic may do. If an operand is a NaN,
// so are the minimum and the maximum.
template <Combine how, class T>
PW_ON_DEVICE T combined(T a, T b) {
  if constexpr (how == Combine::min) {
    return a < b || a != a ? a : b;
  } else if constexpr (how == Combine::max) {
    return a > b || a != a ? a : b;
  } else if constexpr (IsFloat<T>::value) {
    if constexpr (how == Combine::sum) return a + b;
    if constexpr (how == Combine::prod) return a * b;
    return a;  // bit_and and bit_or are refused for floating-point numbers
  } else {
    // The upper bits are cut off again, so it does not matter that a signed char fills them with its sign.
    // NOLINTBEGIN(bugprone-signed-char-misuse)
    const Word first = static_cast<Word>(a), second = static_cast<Word>(b);
    // NOLINTEND(bugprone-signed-char-misuse)
    if constexpr (how == Combine::sum) return static_cast<T>(first + second);
    if constexpr (how == Combine::prod) return static_cast<T>(first * second);
    if constexpr (how == Combine::bit_and) return static_cast<T>(first & second);
    return static_cast<T>(first | second);
  }
}

/// combined() as a function object.
template <Combine how>
struct Combined {
  template <class T>
  PW_ON_DEVICE T operator()(T a, T b) const {
    return combined<how>(a, b);
  }
};

/// The operand of one rank.
PW_ON_DEVICE const unsigned char* operand(const Reduction& reduction, unsigned source) {
  if (source == reduction.own) return reduction.local;
  return reduction.others + (source < reduction.own ? source : source - 1) * reduction.stride;
}

/// K elements. A GPU loads and stores those that fill 16 bytes at once.
template <class T, unsigned K>
struct alignas(sizeof(T) * K == 16 ? 16 : alignof(T)) Elements {
  T at[K];
};

template <class T, unsigned K>
PW_ON_DEVICE Elements<T, K> load_elements(const unsigned char* from) {
#if defined(PW_ON_NVIDIA) || defined(PW_ON_AMD)
  return *reinterpret_cast<const Elements<T, K>*>(from);
#else
  Elements<T, K> elements;  // on a CPU they may have any address
  __builtin_memcpy(&elements, from, sizeof elements);
  return elements;
#endif
}

template <class T, unsigned K>
PW_ON_DEVICE void store_elements(unsigned char* to, const Elements<T, K>& elements) {
#if defined(PW_ON_NVIDIA) || defined(PW_ON_AMD)
  *reinterpret_cast<Elements<T, K>*>(to) = elements;
#else
  __builtin_memcpy(to, &elements, sizeof elements);
#endif
}

/// Combines K elements from number `first` on.
template <class T, Combine how, unsigned K>
PW_ON_DEVICE void reduce_elements(const Reduction& reduction, Word first) {
  using Sum = typename Wide<T>::Type;
  const Word offset = first * sizeof(T);
  Sum sum[K];
  const auto begin = load_elements<T, K>(operand(reduction, 0) + offset);
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) sum[k] = widened(begin.at[k]);
  for (unsigned source = 1; source < reduction.sources; ++source) {
    const auto next = load_elements<T, K>(operand(reduction, source) + offset);
    PW_UNROLL
    for (unsigned k = 0; k < K; ++k) sum[k] = combined<how, Sum>(sum[k], widened(next.at[k]));
  }
  Elements<T, K> elements;
  PW_UNROLL
  for (unsigned k = 0; k < K; ++k) elements.at[k] = rounded(sum[k], T{});
  store_elements(reduction.to + offset, elements);
}

/// Combines this thread's share of the elements: K at a time, and those that remain one by one.
template <class T, Combine how, unsigned K>
PW_ON_DEVICE void reduce_share(const Reduction& reduction, Word thread, Word threads) {
  const Word groups = reduction.count / K;
  for (Word group = thread; group < groups; group += threads)
    reduce_elements<T, how, K>(reduction, group * K);
  for (Word n = groups * K + thread; n < reduction.count; n += threads)
    reduce_elements<T, how, 1>(reduction, n);
}

/// The type of the elements with that number.
template <Element element>
struct TypeOf;
template <>
struct TypeOf<Element::int8> {
  using Type = signed char;
};
template <>
struct TypeOf<Element::uint8> {
  using Type = unsigned char;
};
template <>
struct TypeOf<Element::int16> {
  using Type = short;
};
template <>
struct TypeOf<Element::uint16> {
  using Type = unsigned short;
};
template <>
struct TypeOf<Element::int32> {
  using Type = int;
};
template <>
struct TypeOf<Element::uint32> {
  using Type = unsigned;
};
template <>
struct TypeOf<Element::int64> {
  using Type = long long;
};
template <>
struct TypeOf<Element::uint64> {
  using Type = Word;
};
template <>
struct TypeOf<Element::float16> {
  using Type = Float16;
};
template <>
struct TypeOf<Element::bfloat16> {
  using Type = BFloat16;
};
template <>
struct TypeOf<Element::float32> {
  using Type = float;
};
template <>
struct TypeOf<Element::float64> {
  using Type = double;
};
template <>
struct TypeOf<Element::float8_e4m3> {
  using Type = Float8E4M3;
};
template <>
struct TypeOf<Element::float8_e5m2> {
  using Type = Float8E5M2;
};

/// Passes the operation on to `run`, as Run::run<T, how>().
template <class T, class Run>
PW_ON_DEVICE void run_combining(Combine how, const Run& run) {
  switch (how) {
    case Combine::sum:
      return run.template run<T, Combine::sum>();
    case Combine::min:
      return run.template run<T, Combine::min>();
    case Combine::max:
      return run.template run<T, Combine::max>();
    case Combine::prod:
      return run.template run<T, Combine::prod>();
    case Combine::bit_and:
      if constexpr (!IsFloat<typename Wide<T>::Type>::value) return run.template run<T, Combine::bit_and>();
      return;
    case Combine::bit_or:
      if constexpr (!IsFloat<typename Wide<T>::Type>::value) return run.template run<T, Combine::bit_or>();
      return;
  }
}

/// Passes the type and the operation on to `run`. A kernel would be long if it had all of them; its compiler
/// gets one type and one operation.
template <class Run>
PW_ON_DEVICE void run_typed(Element element, Combine how, const Run& run) {
  switch (element) {
    case Element::int8:
      return run_combining<TypeOf<Element::int8>::Type>(how, run);
    case Element::uint8:
      return run_combining<TypeOf<Element::uint8>::Type>(how, run);
    case Element::int16:
      return run_combining<TypeOf<Element::int16>::Type>(how, run);
    case Element::uint16:
      return run_combining<TypeOf<Element::uint16>::Type>(how, run);
    case Element::int32:
      return run_combining<TypeOf<Element::int32>::Type>(how, run);
    case Element::uint32:
      return run_combining<TypeOf<Element::uint32>::Type>(how, run);
    case Element::int64:
      return run_combining<TypeOf<Element::int64>::Type>(how, run);
    case Element::uint64:
      return run_combining<TypeOf<Element::uint64>::Type>(how, run);
    case Element::float16:
      return run_combining<TypeOf<Element::float16>::Type>(how, run);
    case Element::bfloat16:
      return run_combining<TypeOf<Element::bfloat16>::Type>(how, run);
    case Element::float32:
      return run_combining<TypeOf<Element::float32>::Type>(how, run);
    case Element::float64:
      return run_combining<TypeOf<Element::float64>::Type>(how, run);
    case Element::float8_e4m3:
      return run_combining<TypeOf<Element::float8_e4m3>::Type>(how, run);
    case Element::float8_e5m2:
      return run_combining<TypeOf<Element::float8_e5m2>::Type>(how, run);
  }
}

}  // namespace detail
}  // namespace peerway::device

#endif
