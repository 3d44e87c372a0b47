// How elements are combined: the conversions of 16-bit numbers, what wraps around and what is not a number,
// and that groups of elements, remainders and addresses at any byte give the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "device/cuda/kernels/reduce_arguments.h"
#include "device/host/reduction.h"

namespace pw {
namespace {

using peerway::device::BFloat16;
using peerway::device::Combine;
using peerway::device::Element;
using peerway::device::Float16;
using peerway::device::Float8E4M3;
using peerway::device::Float8E5M2;
using peerway::device::Reduction;
using peerway::device::detail::rounded;
using peerway::device::detail::widened;

// By its definition: sign, 5 bits of exponent, 10 of the fraction.
double half(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(Elements, EveryHalfIsWidenedAndRoundedBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float wide = widened(Float16{static_cast<unsigned short>(bits)});
    if (std::isnan(half(bits))) {
      EXPECT_TRUE(std::isnan(wide)) << bits;
      EXPECT_TRUE(std::isnan(widened(rounded(wide, Float16{})))) << bits;
    } else {
      ASSERT_EQ(wide, half(bits)) << bits;
      ASSERT_EQ(rounded(wide, Float16{}).bits, bits);
    }
  }
}

// Between two neighbouring halves: below, at and above the middle.
TEST(Elements, FloatsAreRoundedToTheNearestHalf) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<float>(half(bits)), high = static_cast<float>(half(bits + 1));
    const float middle = low + (high - low) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(rounded(middle, Float16{}).bits, even) << bits;
    ASSERT_EQ(rounded(std::nextafter(middle, 0.0f), Float16{}).bits, bits);
    ASSERT_EQ(rounded(std::nextafter(middle, 1e9f), Float16{}).bits, bits + 1);
    ASSERT_EQ(rounded(-middle, Float16{}).bits, even | 0x8000);
  }
  EXPECT_EQ(rounded(65519.0f, Float16{}).bits, 0x7bff);
  EXPECT_EQ(rounded(65520.0f, Float16{}).bits, 0x7c00);
  EXPECT_EQ(rounded(-1e30f, Float16{}).bits, 0xfc00);
}

TEST(Elements, BFloat16IsTheUpperHalfOfAFloatRoundedToEven) {
  const auto round = [](float value) { return rounded(value, BFloat16{}).bits; };
  EXPECT_EQ(widened(BFloat16{0x3f80}), 1.0f);
  EXPECT_EQ(round(1.0f), 0x3f80);
  EXPECT_EQ(round(1.00390625f), 0x3f80);  // the middle between 0x3f80 and 0x3f81
  EXPECT_EQ(round(1.01171875f), 0x3f82);  // that between 0x3f81 and 0x3f82
  EXPECT_EQ(round(1.00390637f), 0x3f81);  // just above the first
  EXPECT_EQ(round(-1.00390637f), 0xbf81);
  EXPECT_EQ(round(std::numeric_limits<float>::max()), 0x7f80);  // nearer to infinity
  EXPECT_EQ(round(INFINITY), 0x7f80);
  EXPECT_TRUE(std::isnan(widened(rounded(NAN, BFloat16{}))));
}

// By their definitions: sign, 4 bits of exponent and 3 of the fraction, or 5 and 2.
double e4m3(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 3 & 15);
  const double fraction = bits & 7, sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && fraction == 7) return NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10));
}
double e5m2(unsigned bits) { return half(bits << 8); }

/// Every number is widened and rounded back, and floats between two neighbours go to the nearer one.
template <class T>
void rounds_to_the_nearest(double (*value_of)(unsigned), unsigned largest) {
  const auto round = [](float value) { return unsigned{rounded(value, T{}).bits}; };
  for (unsigned bits = 0; bits < 256; ++bits) {
    const float wide = widened(T{static_cast<unsigned char>(bits)});
    if (std::isnan(value_of(bits))) {
      EXPECT_TRUE(std::isnan(wide)) << bits;
    } else {
      ASSERT_EQ(wide, value_of(bits)) << bits;
      ASSERT_EQ(round(wide), bits);
    }
  }
  for (unsigned bits = 0; bits < largest; ++bits) {
    const auto low = static_cast<float>(value_of(bits)), high = static_cast<float>(value_of(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(round(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(round(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(round(std::nextafter(-middle, -1e9f)), (bits + 1) | 0x80);
  }
  EXPECT_TRUE(std::isnan(widened(rounded(NAN, T{}))));
}

TEST(Elements, FloatsAreRoundedToTheNearestOf8Bits) {
  rounds_to_the_nearest<Float8E4M3>(e4m3, 0x7e);
  rounds_to_the_nearest<Float8E5M2>(e5m2, 0x7b);
  EXPECT_EQ(rounded(464.0f, Float8E4M3{}).bits, 0x7e);
  for (const float large : {464.1f, 600.0f, 1e30f, INFINITY}) {
    EXPECT_TRUE(std::isnan(widened(rounded(large, Float8E4M3{})))) << large;
    EXPECT_TRUE(std::isnan(widened(rounded(-large, Float8E4M3{})))) << large;
  }
  EXPECT_EQ(rounded(61439.0f, Float8E5M2{}).bits, 0x7b);
  for (const float large : {61440.0f, 1e6f, INFINITY}) {
    EXPECT_EQ(rounded(large, Float8E5M2{}).bits, 0x7c) << large;
    EXPECT_EQ(rounded(-large, Float8E5M2{}).bits, 0xfc) << large;
  }
}

/// The reduction of operands that follow one another in `others`; the one of this rank is at `local`.
template <class T>
Reduction reduction_of(Element element, Combine combine, unsigned own, std::vector<T>& to,
                       const std::vector<T>& local, const std::vector<T>& others) {
  return {element,
          combine,
          static_cast<unsigned>(others.size() / local.size()) + 1,
          own,
          local.size(),
          local.size() * sizeof(T),
          reinterpret_cast<unsigned char*>(to.data()),
          reinterpret_cast<const unsigned char*>(local.data()),
          reinterpret_cast<const unsigned char*>(others.data())};
}

template <class T>
T reduced(Element element, Combine combine, T own, T other) {
  std::vector<T> to{0};
  host_reduce(reduction_of<T>(element, combine, 0, to, {own}, {other}));
  return to[0];
}

TEST(Elements, IntegersWrapAround) {
  EXPECT_EQ(reduced<int32_t>(Element::int32, Combine::sum, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(reduced<int16_t>(Element::int16, Combine::prod, -32768, -1), -32768);
  EXPECT_EQ(reduced<uint8_t>(Element::uint8, Combine::sum, 250, 10), 4);
  EXPECT_EQ(reduced<uint64_t>(Element::uint64, Combine::prod, UINT64_MAX, 2), UINT64_MAX - 1);
}

TEST(Elements, MinimaKnowTheSign) {
  EXPECT_EQ(reduced<int8_t>(Element::int8, Combine::min, -1, 1), -1);
  EXPECT_EQ(reduced<uint8_t>(Element::uint8, Combine::min, 255, 1), 1);
  EXPECT_EQ(reduced<int64_t>(Element::int64, Combine::max, -1, 1), 1);
  EXPECT_EQ(reduced<uint64_t>(Element::uint64, Combine::max, UINT64_MAX, 1), UINT64_MAX);
}

TEST(Elements, MinimaAndMaximaOfNaNsAreNaNs) {
  for (const Combine combine : {Combine::min, Combine::max}) {
    EXPECT_TRUE(std::isnan(reduced<double>(Element::float64, combine, NAN, 1)));
    EXPECT_TRUE(std::isnan(reduced<double>(Element::float64, combine, 1, NAN)));
    EXPECT_TRUE(std::isnan(reduced<float>(Element::float32, combine, 1, NAN)));
  }
}

// 1e8 + 1 - 1e8 depends on the order: in the order of the ranks it is 0 in floats, in any other it may be 1.
TEST(Elements, OperandsAreCombinedInTheOrderOfTheRanks) {
  std::vector<float> to{7};
  for (unsigned own = 0; own < 3; ++own) {
    std::vector<float> others{1e8f, 1, -1e8f};
    const std::vector<float> local{others[own]};
    others.erase(others.begin() + own);
    host_reduce(reduction_of(Element::float32, Combine::sum, own, to, local, others));
    EXPECT_EQ(to[0], 0) << own;
  }
}

/// Combines the operands of three ranks as a kernel of so many threads does.
std::vector<uint16_t> by_kernel(uint64_t count, const std::vector<uint16_t>& operands, bool wide,
                                unsigned threads) {
  std::vector<uint16_t> to(count);
  const std::vector<uint16_t> local(operands.begin(), operands.begin() + static_cast<long>(count)),
      others(operands.begin() + static_cast<long>(count), operands.end());
  cuda::ReduceArguments arguments{};
  arguments.reduction = reduction_of(Element::bfloat16, Combine::sum, 0, to, local, others);
  arguments.wide = wide ? 1 : 0;
  for (unsigned thread = 0; thread < threads; ++thread) cuda::reduce(arguments, thread, threads);
  return to;
}

TEST(Elements, GroupsOfElementsAndRemaindersGiveTheSameAsSingleElements) {
  std::mt19937 random(1);
  for (const uint64_t count : {1, 7, 8, 9, 1023, 1024, 1025, 5000}) {
    std::vector<uint16_t> operands(3 * count);
    for (uint16_t& operand : operands) operand = static_cast<uint16_t>(0x3f00 + random() % 0x200);
    const std::vector<uint16_t> single = by_kernel(count, operands, false, 1);
    EXPECT_EQ(by_kernel(count, operands, true, 33), single) << count;
    EXPECT_EQ(by_kernel(count, operands, false, 7), single) << count;
    std::vector<uint16_t> to(count);
    const std::vector<uint16_t> local(operands.begin(), operands.begin() + static_cast<long>(count)),
        others(operands.begin() + static_cast<long>(count), operands.end());
    host_reduce(reduction_of(Element::bfloat16, Combine::sum, 0, to, local, others));
    EXPECT_EQ(to, single) << count;
  }
}

TEST(Elements, TheCpuCombinesAtAnyAddress) {
  constexpr unsigned kCount = 1000;
  std::vector<unsigned char> memory(3 * kCount * sizeof(double) + 5);
  unsigned char* const to = memory.data() + 1;
  unsigned char* const local = to + kCount * sizeof(double) + 1;
  unsigned char* const others = local + kCount * sizeof(double) + 1;
  for (unsigned n = 0; n < kCount; ++n) {
    const double mine = n, theirs = 0.5 * n;
    std::memcpy(local + n * sizeof mine, &mine, sizeof mine);
    std::memcpy(others + n * sizeof theirs, &theirs, sizeof theirs);
  }
  host_reduce({Element::float64, Combine::sum, 2, 1, kCount, kCount * sizeof(double), to, local, others});
  for (unsigned n = 0; n < kCount; ++n) {
    double sum = 0;
    std::memcpy(&sum, to + n * sizeof sum, sizeof sum);
    ASSERT_EQ(sum, 1.5 * n);
  }
}

TEST(Elements, AReductionIsLeftOutAndItsRoundCancelledIfAPieceBeforeItWasCancelled) {
  using peerway::device::kCancelled;
  peerway::device::Word epochs[] = {4, 4 | kCancelled, 4, 4, 4};
  cuda::ReduceArguments arguments{};
  arguments.epochs = epochs;
  arguments.before = 3;
  arguments.after = 1;
  EXPECT_FALSE(none_cancelled(arguments, 0, 1));
  EXPECT_FALSE(none_cancelled(arguments, 1, 2));
  EXPECT_TRUE(none_cancelled(arguments, 0, 2));
  cancel_round(arguments, 0, 1);
  EXPECT_EQ(epochs[2], 4u);
  EXPECT_EQ(epochs[3], 4 | kCancelled);
  EXPECT_EQ(epochs[4], 4u);
  arguments.before = 1;
  EXPECT_TRUE(none_cancelled(arguments, 0, 1));
}

}  // namespace
}  // namespace pw
