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

/// One direction, with reports back; each step takes 100 microseconds.
struct Channel {
  Channel(uint64_t seed, double loss, uint64_t size) : random(seed), lossy(loss), last(size) {}

  struct Sent {
    uint64_t number, turn;  ///< number 0: a question
  };
  void send(uint64_t number) {
    if (number != 0 && losing > 0) {
      --losing;
      return;
    }
    if (!random.happens(lossy)) air.push_back({number, out.turn()});
    if (random.happens(lossy)) air.push_back({number, out.turn()});
    if (air.size() > 1 && random.happens(lossy)) std::swap(air.back(), air[air.size() - 2]);
  }
  void step() {
    now += 100'000;
    out.resend(now, [&](const Datagram& datagram) {
      ++again;
      send(number_of(datagram));
    });
    while (out.room() && out.next_sequence() <= last) {
      const uint64_t number = out.next_sequence();
      out.push(numbered(number), nullptr, now);
      if (number == lose_from) losing = lose;
      send(number);
    }
    if (out.ask(now, out.next_sequence() > last)) send(0);
    for (const auto& [number, turn] : std::exchange(air, {})) {
      in.note(turn);
      if (number == 0) continue;
      in.arrive(number, numbered(number), [&](auto datagram) { EXPECT_EQ(number_of(datagram), ++taken); });
    }
    if (random.happens(lossy)) return;
    const auto end = [&](auto&&, const Datagram& datagram) { EXPECT_EQ(number_of(datagram), ++ended); };
    EXPECT_TRUE(out.acknowledge(in.report(), now, end));
  }
  /// Returns how many steps the transfer took.
  int run() {
    int steps = 0;
    for (; steps < 200'000 && ended < last; ++steps) step();
    return steps;
  }

  Random random;
  double lossy;
  uint64_t last;
  uint64_t lose_from = 0, lose = 0, losing = 0;  ///< loses this many transmissions, beginning with that of
                                                 ///< packet `lose_from`
  uint64_t now = 1, taken = 0, ended = 0, again = 0;
  SendWindow out;
  ReceiveWindow in;
  std::vector<Sent> air;
};

const auto ignore_end = [](auto&&, auto&&) {};

std::vector<uint64_t> sent_again(SendWindow& out, uint64_t now) {
  std::vector<uint64_t> numbers;
  out.resend(now, [&](const Datagram& datagram) { numbers.push_back(number_of(datagram)); });
  return numbers;
}

TEST(TorusFlow, BringsAllInOrderWhateverIsLost) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Channel channel(seed, seed % 3 == 0 ? 0.3 : 0.02, 3000);
    channel.run();
    EXPECT_EQ(channel.taken, channel.last);
    EXPECT_EQ(channel.ended, channel.last);
    EXPECT_TRUE(channel.out.empty());
    EXPECT_EQ(channel.out.next_timer(), UINT64_MAX);
  }
}

TEST(TorusFlow, SendsNothingTwiceWhereNothingIsLost) {
  Channel channel(1, 0, 3000);
  channel.run();
  EXPECT_EQ(channel.ended, 3000u);
  EXPECT_EQ(channel.again, 0u);
}

// Only lost packets are sent again, and without waiting for a timer: with a round trip of one step, a loss
// costs one step, also at the end, and also if the retransmission is lost, too.
TEST(TorusFlow, FindsALossAtTheEndAsSoonAsOneInTheMiddle) {
  Channel whole(1, 0, 1000);
  const int usual = whole.run();
  struct Case {
    uint64_t from, lose;
    int steps;
  };
  for (const Case& c :
       {Case{500, 1, 0}, {500, 20, 1}, {998, 1, 1}, {1000, 1, 1}, {985, 16, 1}, {1000, 2, 2}}) {
    Channel channel(1, 0, 1000);
    channel.lose_from = c.from, channel.lose = c.lose;
    EXPECT_EQ(channel.run(), usual + c.steps) << c.from << ", " << c.lose;
    EXPECT_EQ(channel.again, c.lose);
  }
}

TEST(TorusFlow, AsksWhenNothingComesBack) {
  SendWindow out;
  EXPECT_FALSE(out.ask(1'000'000'000, true));
  out.push(numbered(1), nullptr, 1000);
  EXPECT_FALSE(out.ask(1000, true));  // one is not worth it
  uint64_t at = 1000, asked = 0;
  for (uint64_t waited = 0; asked < 3; ++asked) {
    const uint64_t next = out.next_timer();
    EXPECT_GE(next - at, 2 * waited);  // less and less often
    EXPECT_FALSE(out.ask(next - 1, true));
    EXPECT_TRUE(out.ask(next, true));
    waited = next - at, at = next;
  }
  // The question arrived, but not the packet.
  EXPECT_TRUE(out.acknowledge({0, {}, out.turn()}, at, ignore_end));
  EXPECT_EQ(sent_again(out, at), std::vector<uint64_t>{1});
}

TEST(TorusFlow, FindsALossByWhatArrivedLater) {
  SendWindow out;
  for (uint64_t number = 1; number <= 5; ++number) out.push(numbered(number), nullptr, 1000);
  // 3 and 4 have arrived, 2 has not.
  EXPECT_TRUE(out.acknowledge({1, {1 << 1 | 1 << 2}, 4}, 2000, ignore_end));
  EXPECT_TRUE(sent_again(out, 2000).empty());
  EXPECT_TRUE(out.acknowledge({1, {1 << 1 | 1 << 2 | 1 << 3}, 5}, 3000, ignore_end));
  EXPECT_EQ(sent_again(out, 3000), std::vector<uint64_t>{2});
}

// The other end's report of the turn says whether the first or the second transmission arrived.
TEST(TorusFlow, TakesNoLateFirstTransmissionForTheSecond) {
  SendWindow out;
  for (uint64_t number = 1; number <= 5; ++number) out.push(numbered(number), nullptr, 1000);
  EXPECT_TRUE(out.acknowledge({0, {1 << 3}, 5}, 2000, ignore_end));
  EXPECT_EQ(sent_again(out, 2000), (std::vector<uint64_t>{1, 2}));
  for (uint64_t number = 6; number <= 9; ++number) out.push(numbered(number), nullptr, 2000);
  EXPECT_TRUE(out.acknowledge({2, {1 << 2}, 5}, 3000, ignore_end));  // they had only been overtaken
  EXPECT_TRUE(sent_again(out, 3000).empty());
}

TEST(TorusFlow, RefusesWhatCannotBe) {
  SendWindow out;
  out.push(numbered(1), nullptr, 1);
  for (const Report& report : {Report{2, {}, 0}, {UINT64_MAX, {}, 0}, {0, {}, 2}, {1, {}, UINT64_MAX}})
    EXPECT_FALSE(out.acknowledge(report, 2, [](auto&&, auto&&) { ADD_FAILURE(); }));
  ReceiveWindow in;
  const auto never = [](auto) { ADD_FAILURE(); };
  EXPECT_FALSE(in.arrive(0, numbered(0), never));
  EXPECT_FALSE(in.arrive(1 + kWindow, numbered(0), never));
  EXPECT_FALSE(in.arrive(UINT64_MAX, numbered(0), never));
  EXPECT_TRUE(in.arrive(kWindow, numbered(0), never));
  EXPECT_FALSE(in.arrive(kWindow, numbered(0), never));  // again
}

constexpr uint64_t kLook = 100'000'000;

uint64_t looks_until_too_long(Silence& silence, uint64_t& now) {
  for (uint64_t looks = 1;; ++looks)
    if (silence.goes_on(now += kLook)) return looks;
}

TEST(Silence, IsTooLongAfterItsTimeout) {
  Silence silence;
  uint64_t now = 0;
  EXPECT_EQ(looks_until_too_long(silence, now), Silence::kTimeout / kLook + 1);
}

TEST(Silence, BeginsAnewWhenThePeerIsHeard) {
  Silence silence;
  uint64_t now = 0;
  looks_until_too_long(silence, now);
  silence.end();
  EXPECT_EQ(looks_until_too_long(silence, now), Silence::kTimeout / kLook + 1);
}

TEST(Silence, IsNotOfThePeerWhileThisEndStandsStill) {
  Silence silence;
  uint64_t now = 0;
  EXPECT_FALSE(silence.goes_on(now += 3600 * Silence::kTimeout));
  EXPECT_FALSE(silence.goes_on(now += 3600 * Silence::kTimeout));
}

}  // namespace
}  // namespace pw::torus
