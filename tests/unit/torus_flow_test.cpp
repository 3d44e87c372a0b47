// The reliable flow over a channel that loses, repeats and reorders.
#include <gtest/gtest.h>

#include "torus/flow.h"
#include "torus/random.h"

namespace pw::torus {
namespace {

Datagram numbered(uint64_t number) {
  Datagram datagram(sizeof number);
  std::memcpy(datagram.data(), &number, sizeof number);
  return datagram;
}

uint64_t number_of(std::span<const std::byte> datagram) {
  uint64_t number = 0;
  std::memcpy(&number, datagram.data(), sizeof number);
  return number;
}

/// One direction with acknowledgements back, each step 100 microseconds.
struct Channel {
  explicit Channel(uint64_t seed, double loss) : random(seed), lossy(loss) {}

  void send(uint64_t number) {
    if (!random.happens(lossy)) air.push_back(number);
    if (random.happens(lossy)) air.push_back(number);
    if (air.size() > 1 && random.happens(lossy)) std::swap(air.back(), air[air.size() - 2]);
  }
  void step(uint64_t last) {
    now += 100'000;
    out.resend(now, [&](const Datagram& datagram) {
      ++again;
      send(number_of(datagram));
    });
    while (out.room() && out.next_sequence() <= last) {
      const uint64_t number = out.next_sequence();
      out.push(numbered(number), nullptr, now);
      send(number);
    }
    for (const uint64_t number : std::exchange(air, {}))
      in.arrive(number, numbered(number), [&](auto datagram) { EXPECT_EQ(number_of(datagram), ++taken); });
    Header header{};
    in.report(header);
    if (random.happens(lossy)) return;
    const auto end = [&](auto&&, const Datagram& datagram) { EXPECT_EQ(number_of(datagram), ++ended); };
    EXPECT_TRUE(out.acknowledge(header.acknowledged, header.arrived, now, end));
  }

  Random random;
  double lossy;
  uint64_t now = 1, taken = 0, ended = 0, again = 0;
  SendWindow out;
  ReceiveWindow in;
  std::vector<uint64_t> air;
};

TEST(TorusFlow, BringsAllInOrderWhateverIsLost) {
  constexpr uint64_t kLast = 3000;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Channel channel(seed, seed % 3 == 0 ? 0.3 : 0.02);
    for (int step = 0; step < 200'000 && channel.ended < kLast; ++step) channel.step(kLast);
    EXPECT_EQ(channel.taken, kLast);
    EXPECT_EQ(channel.ended, kLast);
    EXPECT_TRUE(channel.out.empty());
    EXPECT_EQ(channel.out.next_timer(), UINT64_MAX);
  }
}

TEST(TorusFlow, SendsNothingTwiceWhereNothingIsLost) {
  Channel channel(1, 0);
  for (int step = 0; step < 100; ++step) channel.step(3000);
  EXPECT_EQ(channel.ended, 3000u);
  EXPECT_EQ(channel.again, 0u);
}

TEST(TorusFlow, FindsALossByWhatArrivedLater) {
  SendWindow out;
  for (uint64_t number = 1; number <= 5; ++number) out.push(numbered(number), nullptr, 1000);
  const auto ignore = [](auto&&, auto&&) {};
  std::vector<uint64_t> lost;
  const auto note = [&](const Datagram& datagram) { lost.push_back(number_of(datagram)); };
  EXPECT_TRUE(out.acknowledge(1, {1 << 1 | 1 << 2}, 2000, ignore));  // 3 and 4 are there, and 2 is not
  out.resend(2000, note);
  EXPECT_TRUE(lost.empty());
  EXPECT_TRUE(out.acknowledge(1, {1 << 1 | 1 << 2 | 1 << 3}, 3000, ignore));
  out.resend(3000, note);
  EXPECT_EQ(lost, std::vector<uint64_t>{2});
}

TEST(TorusFlow, RefusesWhatCannotBe) {
  SendWindow out;
  out.push(numbered(1), nullptr, 1);
  EXPECT_FALSE(out.acknowledge(2, {}, 2, [](auto&&, auto&&) { ADD_FAILURE(); }));
  EXPECT_FALSE(out.acknowledge(UINT64_MAX, {}, 2, [](auto&&, auto&&) { ADD_FAILURE(); }));
  ReceiveWindow in;
  const auto never = [](auto) { ADD_FAILURE(); };
  EXPECT_FALSE(in.arrive(0, numbered(0), never));
  EXPECT_FALSE(in.arrive(1 + kWindow, numbered(0), never));
  EXPECT_FALSE(in.arrive(UINT64_MAX, numbered(0), never));
  EXPECT_TRUE(in.arrive(kWindow, numbered(0), never));
  EXPECT_FALSE(in.arrive(kWindow, numbered(0), never));  // again
}

}  // namespace
}  // namespace pw::torus
