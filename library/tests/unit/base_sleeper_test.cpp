// Sleeping and waking: no wake is lost, whoever orders the memory; how long naps are, and polls before them.
#include <gtest/gtest.h>

#include <thread>

#include "base/sleeper.h"
#include "base/waiting.h"

namespace pw {
namespace {

constexpr uint64_t kMinute = 60'000'000'000;

// Waits until the counter has the value; false when a wake was lost.
bool sleep_until(Sleepers& where, const std::atomic<uint64_t>& counter, uint64_t value) {
  bool woken = true;
  const Sleeper sleeper(where);
  for (;;) {
    const uint32_t seen = sleeper.seen();
    if (counter.load(std::memory_order_acquire) >= value) return woken;
    woken &= sleeper.sleep(seen, kMinute);
  }
}

// Two threads wake one another in turn.
bool play(uint64_t rounds) {
  Sleepers bed[2]{};
  std::atomic<uint64_t> counter[2]{};
  std::atomic<bool> woken{true};
  const auto side = [&](int mine) {
    for (uint64_t round = 1; round <= rounds; ++round) {
      if (mine == 1 && !sleep_until(bed[1], counter[1], round)) woken = false;
      counter[1 - mine].store(round, std::memory_order_release);
      wake(bed[1 - mine]);
      if (mine == 0 && !sleep_until(bed[0], counter[0], round)) woken = false;
    }
  };
  std::thread other(side, 1);
  side(0);
  other.join();
  EXPECT_EQ(bed[0].count.load(), 0u);
  EXPECT_EQ(bed[1].count.load(), 0u);
  return woken.load();
}

TEST(Sleeper, NoWakeIsLost) {
  let_sleepers_order();
  EXPECT_TRUE(play(5000));
}

TEST(Sleeper, NoWakeIsLostWhereWakersOrder) {
  const bool before = detail::wakers_order.exchange(true);
  EXPECT_TRUE(play(5000));
  detail::wakers_order = before;
}

TEST(Sleeper, AWakeBetweenTheLookAndTheSleepCounts) {
  Sleepers where{};
  const Sleeper sleeper(where);
  const uint32_t seen = sleeper.seen();
  wake(where);
  EXPECT_TRUE(sleeper.sleep(seen, kMinute));
}

TEST(Sleeper, ASleepEndsWhenItsTimeHasPassed) {
  Sleepers where{};
  const Sleeper sleeper(where);
  EXPECT_FALSE(sleeper.sleep(sleeper.seen(), 1000));
}

TEST(Sleeper, WithNobodyAsleepAWakeChangesNothing) {
  Sleepers where{};
  wake(where);
  EXPECT_EQ(where.woken.load(), 0u);
}

TEST(Waiting, NapsAreShortOnlyWhereNobodyWakes) {
  const auto sleepers = std::make_shared<Sleepers>();
  const Waiting waiting(sleepers);
  constexpr uint64_t kSecond = 1'000'000'000;
  EXPECT_EQ(waiting.nap_ns(Wakes::always, 0), waiting.nap_ns(Wakes::always, kSecond));
  EXPECT_EQ(waiting.nap_ns(Wakes::unless_unseen, 0), waiting.nap_ns(Wakes::always, 0));
  sleepers->unseen = 1;
  EXPECT_EQ(waiting.nap_ns(Wakes::unless_unseen, 800'000), 100'000u);
  EXPECT_EQ(waiting.nap_ns(Wakes::always, 800'000), 10'000'000u);
  EXPECT_LT(waiting.nap_ns(Wakes::perhaps, 0), 50'001u);
  EXPECT_LT(waiting.nap_ns(Wakes::perhaps, kSecond), waiting.nap_ns(Wakes::always, kSecond));
}

TEST(PollTime, IsLongOnlyAfterAWaitThatWasShort) {
  PollTime poll_time;
  const uint64_t most = poll_time.ns();
  poll_time.slept(3 * most);  // two thirds of it are wakes
  EXPECT_EQ(poll_time.ns(), most);
  poll_time.slept(4 * most);
  EXPECT_LE(poll_time.ns(), most / 10);
  poll_time.polled();
  EXPECT_EQ(poll_time.ns(), most);
}

TEST(Waiting, APollThatTakesLongerThanASleepIsNotRepeated) {
  const Waiting waiting(std::make_shared<Sleepers>());
  PollTime poll_time;
  int polls = 0;
  EXPECT_FALSE(waiting.poll_before_sleep(poll_time, [&] {
    ++polls;
    for (const uint64_t until = now_ns() + 2 * poll_time.ns(); now_ns() < until;) relax();
    return false;
  }));
  EXPECT_EQ(polls, 1);
}

TEST(Waiting, ANoticeMayComeWhenNobodyWaitsAnyMore) {
  void* user = nullptr;
  {
    const auto waiting = std::make_shared<const Waiting>(std::make_shared<Sleepers>());
    const auto notice = std::make_shared<Notice>(waiting);
    user = Notice::hand_out(notice);
    EXPECT_FALSE(notice->given());
  }
  Notice::give(user);
}

}  // namespace
}  // namespace pw
