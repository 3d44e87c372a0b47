// An all-reduce inside kernels: threads of the CPU stand for the members' kernels, and plain memory for the
// slots that their lanes would have.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <type_traits>
#include <vector>

#include "device/host/reduction.h"
#include "peerway/device/all_reduce.cuh"

namespace pw {
namespace {

using peerway::device::all_reduce;
using peerway::device::BFloat16;
using peerway::device::Combine;
using peerway::device::Element;
using peerway::device::Float16;
using peerway::device::Result;
using peerway::device::Thread;
using peerway::device::Word;

constexpr Word kNanosecondsOfASecond = 1000000000;

/// Handles of members whose arrays have `bytes` bytes, and the slots between them.
class Members {
 public:
  Members(unsigned members, unsigned unit, uint64_t bytes) : members_(members), slots_(members * members) {
    for (auto& slots : slots_) slots.resize((4 * bytes + 15) / 16);
    for (unsigned own = 0; own < members; ++own) {
      pw_all_reduce_handle handle{PW_HANDLE_VERSION, unit, members, own, 2 * bytes, {}, {}, {}, {}};
      for (unsigned other = 0; other < members; ++other) {
        handle.to[other] = slots(own, other);
        handle.from[other] = slots(other, own);
        handle.rank[other] = static_cast<int>(100 + other);
      }
      handle.guard = {&stop_, &report_, &polled_, kNanosecondsOfASecond / 50};
      handles.push_back(handle);
    }
  }

  void each(const std::function<void(unsigned)>& body) const {
    std::vector<std::future<void>> running;
    for (unsigned n = 0; n < members_; ++n) running.push_back(std::async(std::launch::async, body, n));
    for (auto& member : running) member.get();
  }
  void wait_for_long() {
    for (auto& handle : handles) handle.guard.timeout_ns = 60 * kNanosecondsOfASecond;
  }

  std::vector<pw_all_reduce_handle> handles;
  Word stop_ = 0, report_ = 0, polled_ = 0;

 private:
  struct alignas(16) Line {
    unsigned char bytes[16];
  };
  unsigned char* slots(unsigned from, unsigned to) { return slots_[from * members_ + to].data()->bytes; }

  unsigned members_;
  std::vector<std::vector<Line>> slots_;
};

template <class T>
T value(unsigned member, Word epoch, uint64_t n) {
  const auto bits = 2654435761u * (member + 1) + 40503u * static_cast<unsigned>(epoch * 1000 + n);
  T element;
  if constexpr (std::is_same_v<T, Float16>) {
    element.bits = static_cast<unsigned short>(0x3800 + bits % 1024);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    element.bits = static_cast<unsigned short>(0x3f00 + bits % 128);
  } else {
    element = static_cast<T>(bits % 1000) / static_cast<T>(7);
  }
  return element;
}

/// What the collectives of the host give for the same elements.
template <class T>
std::vector<T> expected(Element element, Combine combine, unsigned members, Word epoch, uint64_t count) {
  std::vector<T> operands, to(count);
  for (unsigned member = 0; member < members; ++member)
    for (uint64_t n = 0; n < count; ++n) operands.push_back(value<T>(member, epoch, n));
  const auto* first = reinterpret_cast<const unsigned char*>(operands.data());
  host_reduce({element, combine, members, 0, count, count * sizeof(T),
               reinterpret_cast<unsigned char*>(to.data()), first, first + count * sizeof(T)});
  return to;
}

/// All members combine `count` elements in several epochs, two threads at each a part.
template <class T, Combine how>
void combines_in_every_epoch(unsigned members, unsigned unit, Element element, uint64_t count) {
  Members group(members, unit, count * sizeof(T));
  group.wait_for_long();
  group.each([&](unsigned own) {
    const uint64_t half = count / 2 * sizeof(T) / unit * unit / sizeof(T);
    const auto run = [&](uint64_t first, uint64_t end) {
      for (Word epoch = 1; epoch < 6; ++epoch) {
        alignas(8) std::array<T, 64> from{}, to{};
        for (uint64_t n = first; n < end; ++n) from[n - first] = value<T>(own, epoch, n);
        ASSERT_EQ((all_reduce<T, how>(Thread{}, group.handles[own], epoch, to.data(), from.data(),
                                      end - first, first)),
                  Result::ok);
        const auto wanted = expected<T>(element, how, members, epoch, count);
        ASSERT_EQ(std::memcmp(to.data(), &wanted[first], (end - first) * sizeof(T)), 0) << epoch;
      }
    };
    auto other = std::async(std::launch::async, run, half, count);
    run(0, half);
    other.get();
  });
}

TEST(AllReduceInKernels, GivesTheBitsOfTheHostsCollectives) {
  combines_in_every_epoch<double, Combine::sum>(3, 8, Element::float64, 5);
  combines_in_every_epoch<float, Combine::max>(2, 8, Element::float32, 10);
  combines_in_every_epoch<float, Combine::prod>(4, 4, Element::float32, 7);
  combines_in_every_epoch<Float16, Combine::sum>(3, 4, Element::float16, 6);
  combines_in_every_epoch<BFloat16, Combine::sum>(3, 8, Element::bfloat16, 24);
  combines_in_every_epoch<unsigned char, Combine::bit_or>(2, 8, Element::uint8, 64);
  combines_in_every_epoch<long long, Combine::min>(2, 8, Element::int64, 3);
}

TEST(AllReduceInKernels, AsManyMembersAsAHandleHas) {
  combines_in_every_epoch<double, Combine::sum>(1, 8, Element::float64, 4);
  combines_in_every_epoch<int, Combine::sum>(9, 8, Element::int32, 4);
  combines_in_every_epoch<int, Combine::sum>(PW_KERNEL_MEMBERS, 4, Element::int32, 3);
}

/// A value and where it was found. Two of them fill three packets of 8 bytes.
struct Located {
  float value;
  int rank, place;
};
struct FirstLargest {
  Located operator()(Located a, Located b) const { return b.value > a.value ? b : a; }
};
struct Product {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

/// Five members combine `count` elements `element(member, epoch, n)`, in memory that is aligned for their
/// type and no more, if they fill packets.
template <class T, class Op, class ElementAt>
void combines_any_type(unsigned unit, uint64_t count, const Op& op, const ElementAt& element) {
  constexpr unsigned kMembers = 5;
  Members group(kMembers, unit, count * sizeof(T));
  group.wait_for_long();
  group.each([&](unsigned own) {
    alignas(8) std::array<unsigned char, 1024> memory{};
    T* const at = reinterpret_cast<T*>(memory.data() + (sizeof(T) % unit == 0 ? alignof(T) : unit));
    for (Word epoch = 1; epoch < 6; ++epoch) {
      for (uint64_t n = 0; n < count; ++n) at[n] = element(own, epoch, n);
      ASSERT_EQ(all_reduce(Thread{}, group.handles[own], epoch, op, at, at, count), Result::ok);
      for (uint64_t n = 0; n < count; ++n) {
        T wanted = element(0, epoch, n);
        for (unsigned member = 1; member < kMembers; ++member) wanted = op(wanted, element(member, epoch, n));
        ASSERT_EQ(std::memcmp(&at[n], &wanted, sizeof wanted), 0) << "epoch " << epoch << ", " << n;
      }
    }
  });
}

TEST(AllReduceInKernels, CombinesElementsOfSeveralWordsByAnyOperation) {
  const auto number = [](unsigned member, Word epoch, uint64_t n) { return value<float>(member, epoch, n); };
  const auto small = [&](unsigned member, Word epoch, uint64_t n) {
    return std::complex<float>(number(member, epoch, n), -number(member + 1, epoch, n));
  };
  const auto large = [&](unsigned member, Word epoch, uint64_t n) {
    return std::complex<double>(small(member, epoch, n));
  };
  const auto located = [&](unsigned member, Word, uint64_t n) {
    const int rank = static_cast<int>(member), place = static_cast<int>(n);
    return Located{static_cast<float>(member == 0 || member == 2 ? place : 2 * place), rank, place};
  };
  for (const unsigned unit : {4u, 8u}) {
    combines_any_type<std::complex<float>>(unit, 7, Product(), small);
    combines_any_type<Located>(unit, 6, FirstLargest(), located);
    combines_any_type<int>(
        unit, 6, [](int a, int b) { return a - b; },
        [](unsigned member, Word, uint64_t n) { return static_cast<int>(100 * member + n); });
  }
  combines_any_type<std::complex<double>>(8, 9, Product(), large);
}

TEST(AllReduceInKernels, RefusesWhatDoesNotFitThePackets) {
  Members group(2, 8, 32);
  pw_all_reduce_handle& handle = group.handles[0];
  alignas(8) float at[32] = {};
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, 10), Result::out_of_range);
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, 4, 6), Result::out_of_range);
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, ~Word{0} / 4), Result::out_of_range);
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, 3), Result::misaligned);
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, 2, 1), Result::misaligned);
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at + 1, at, 2), Result::misaligned);
  handle.unit = 4;
  alignas(8) double wide[2] = {};
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, wide, wide, 1), Result::misaligned) << "no packet carries it";
  handle.unit = 8;
  Located three[3] = {};
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, FirstLargest(), three, three, 1), Result::misaligned)
      << "12 bytes";
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, FirstLargest(), three, three, 3), Result::out_of_range);
  handle.version = 0;
  EXPECT_EQ(all_reduce(Thread{}, handle, 1, at, at, 2), Result::other_version);
}

TEST(AllReduceInKernels, AWaitForALostMemberEnds) {
  Members group(3, 8, 16);
  alignas(8) double at[2] = {1, 2};
  EXPECT_EQ(all_reduce(Thread{}, group.handles[1], 1, at, at, 2), Result::timeout);
  EXPECT_EQ(group.report_ & 0xff, peerway::device::detail::kTimedOut);
  EXPECT_GE((group.report_ >> 8 & 0xffff) - 1, 100u) << "a member that is late";
  group.report_ = 0;
  group.wait_for_long();
  group.stop_ = 1;
  group.polled_ = 0;
  EXPECT_EQ(all_reduce(Thread{}, group.handles[1], 1, at, at, 2), Result::cancelled);
}

}  // namespace
}  // namespace pw
