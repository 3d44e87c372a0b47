// Plans whose ranks do not reach one another's memory: what the proxy does for them, and how it ends.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "plan/run/proxy.h"
#include "plan_ring.h"

namespace pw {
namespace {

using testing::fill;
using testing::holds;
using testing::kSecond;
using testing::range;
using testing::Ranks;
using testing::Ring;

// Ranks that use only the path named, so that nothing is mapped.
struct Far {
  explicit Far(int size, const char* paths = "staged") : ranks(size) {
    for (int rank = 0; rank < size; ++rank) ranks[rank].resolver().use(paths);
  }
  Ranks ranks;
};

class PostedSizes : public ::testing::TestWithParam<std::tuple<int, uint64_t>> {};

TEST_P(PostedSizes, EveryEpochBringsItsOwnData) {
  const auto [size, bytes] = GetParam();
  Ring ring({size, bytes, "staged"});
  EXPECT_NE(ring.plan(0).describe().find("plan/posted"), std::string::npos) << ring.plan(0).describe();
  ring.turn(20);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PostedSizes,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Values(1, 4096, 300000)));

TEST(PlanProxy, OneEndThatRestrictsItsPathsIsEnough) {
  Ranks ranks(2);
  ranks[1].resolver().use("staged");
  ranks.each([&](int rank) {
    const auto region = ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(ranks[rank], host_device());
    if (rank == 0) plan.operations().send(1, 1, region, range(0, 64));
    if (rank == 1) plan.operations().receive(0, 1, region, range(0, 64));
    plan.prepare(false);
    EXPECT_NE(plan.describe().find("plan/posted"), std::string::npos) << plan.describe();
    for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
      if (rank == 0) fill(region->address(), 64, 0, epoch);
      ASSERT_EQ(plan.start(), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_TRUE(holds(region->address(), 64, 0, epoch));
    }
  });
}

TEST(PlanProxy, PathsOverMappingsNeedNoProxy) {
  Ring ring({.paths = "peer"});
  EXPECT_EQ(ring.plan(0).describe().find("proxy"), std::string::npos) << ring.plan(0).describe();
}

TEST(PlanProxy, TheHostRunsAheadOfStreams) { Ring({.bytes = 5000, .paths = "staged"}).turn_on_streams(300); }

// Rank 2 starts only when rank 1 has what rank 0 sends it after what it sends to rank 2.
TEST(PlanProxy, ALaneThatWaitsHoldsUpNoOther) {
  Far far(3);
  std::atomic<bool> rank_1_has_it{false};
  far.ranks.each([&](int rank) {
    const auto region = far.ranks[rank].allocate({PW_HOST, 0}, 128);
    Plan plan(far.ranks[rank], host_device());
    if (rank == 0) {
      plan.operations().send(2, 1, region, range(0, 64));
      plan.operations().send(1, 1, region, range(64, 64));
      fill(region->address(), 128, 0, 1);
    } else {
      plan.operations().receive(0, 1, region, range(rank == 2 ? 0 : 64, 64));
    }
    plan.prepare(false);
    while (rank == 2 && !rank_1_has_it) std::this_thread::yield();
    ASSERT_EQ(plan.start(), PW_OK);
    ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
    if (rank == 1) rank_1_has_it = true;
    std::vector<std::byte> expected(128);
    fill(expected.data(), 128, 0, 1);
    const uint64_t at = rank == 1 ? 64 : 0;
    EXPECT_EQ(std::memcmp(region->address() + at, expected.data() + at, rank == 0 ? 128 : 64), 0);
  });
}

// Rank 1 puts to rank 0, gets from it, and is held back by a signal of it.
TEST(PlanProxy, OneSidedOperationsNotifyAndWait) {
  Far far(2);
  constexpr uint64_t kBytes = 3000;
  auto target = far.ranks[0].allocate({PW_HOST, 0}, 2 * kBytes);
  auto local = far.ranks[1].allocate({PW_HOST, 0}, 2 * kBytes);
  Signal arrived(far.ranks[0], 1), ready(far.ranks[1], 0);
  const auto to = far.ranks.import(1, 0, *target);
  const auto notify_arrived = far.ranks.import(1, arrived);
  const auto notify_ready = far.ranks.import(0, ready);
  {
    Plan plan(far.ranks[1], host_device());
    const Notification notification{notify_arrived.get(), 3};
    plan.operations().after(ready, 0, 1);
    plan.operations().put(*to, range(0, kBytes), local, range(0, kBytes), &notification);
    plan.operations().get(*to, range(kBytes, kBytes), local, range(kBytes, kBytes));
    plan.prepare(true);
    EXPECT_EQ(far.ranks[1].notify(notification), PW_INVALID_ARGUMENT) << "the plan owns the signal";
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      fill(target->address() + kBytes, kBytes, 0, epoch);
      fill(local->address(), kBytes, 1, epoch);
      ASSERT_EQ(plan.start(), PW_OK);
      EXPECT_EQ(arrived.value(), 3 * (epoch - 1)) << "the other rank is not ready";
      ASSERT_EQ(far.ranks[0].notify({notify_ready.get(), 1}), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_EQ(arrived.wait(3 * epoch, 20 * kSecond), PW_OK);
      ASSERT_TRUE(holds(target->address(), kBytes, 1, epoch));
      ASSERT_TRUE(holds(local->address() + kBytes, kBytes, 0, epoch));
    }
  }
  // Once the plan is gone the signal goes on from where it is.
  EXPECT_EQ(far.ranks[1].notify({notify_arrived.get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(arrived.value(), 61u);
}

TEST(PlanProxy, APlanThatWaitsInVainNamesTheRank) {
  Ring ring({.paths = "staged"});
  ring.expect_timeout(kSecond / 20);
  ring.free_plan(0);  // while the proxy still waits for the other rank to be ready
}

TEST(PlanProxy, ASenderThatWaitsInVainNamesTheRank) {
  Far far(2);
  far.ranks.each([&](int rank) {
    const auto region = far.ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(far.ranks[rank], host_device());
    rank == 0 ? plan.operations().send(1, 1, region, range(0, 64))
              : plan.operations().receive(0, 1, region, range(0, 64));
    plan.set_timeout(kSecond / 20);
    plan.prepare(false);
    if (rank == 1) return;
    EXPECT_EQ(plan.start(), PW_OK);
    EXPECT_EQ(plan.finish(20 * kSecond), PW_TIMEOUT);
    EXPECT_NE(std::string(last_error_message()).find("rank 1"), std::string::npos) << last_error_message();
  });
}

TEST(PlanProxy, ClosingTheContextEndsItsPlans) { Ring({.paths = "staged"}).expect_closed(); }

TEST(PlanProxy, AFailureOfThePathCancelsThePlanAndSaysWhy) {
  Far far(2);
  auto target = far.ranks[0].allocate({PW_HOST, 0}, 64);
  const auto local = far.ranks[1].allocate({PW_HOST, 0}, 64);
  const auto to = far.ranks.import(1, 0, *target);
  Plan plan(far.ranks[1], host_device());
  plan.operations().put(*to, range(0, 64), local, range(0, 64), nullptr);
  plan.prepare(true);
  Plan other(far.ranks[1], host_device());
  const auto another = far.ranks[0].allocate({PW_HOST, 0}, 64);
  const auto to_another = far.ranks.import(1, 0, *another);
  other.operations().put(*to_another, range(0, 64), local, range(0, 64), nullptr);
  other.prepare(true);
  target.reset();
  ASSERT_EQ(plan.start(), PW_OK);
  EXPECT_EQ(plan.finish(20 * kSecond), PW_STALE_KEY);
  EXPECT_NE(std::string(last_error_message()).find("was closed"), std::string::npos) << last_error_message();
  EXPECT_EQ(plan.start(), PW_STALE_KEY) << "a cancelled plan does nothing any more";
  ASSERT_EQ(other.start(), PW_OK) << "the others go on";
  EXPECT_EQ(other.finish(20 * kSecond), PW_OK) << last_error_message();
}

TEST(PlanProxy, RanksWithNoPathBetweenThemCannotPrepare) {
  Far far(2, "mapped");
  far.ranks.each([&](int rank) {
    const auto region = far.ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(far.ranks[rank], host_device());
    rank == 0 ? plan.operations().send(1, 1, region, range(0, 64))
              : plan.operations().receive(0, 1, region, range(0, 64));
    EXPECT_THROW(plan.prepare(false), Error);
  });
}

class Throws final : public Served {
 public:
  Poll poll() override { throw std::logic_error("a defect"); }
  void cancel(pw_status, const std::string&) override {}
};

TEST(PlanProxy, AThreadThatFailsCancelsAllItServes) {
  Ring ring({.paths = "staged"});
  Proxy& proxy = *Proxy::of(ring.ranks[0]);
  proxy.serve(std::make_shared<Throws>());
  EXPECT_EQ(ring.plan(0).start() == PW_OK ? ring.plan(0).finish(20 * kSecond) : ring.plan(0).status(),
            PW_INTERNAL);
  EXPECT_NE(std::string(last_error_message()).find("a defect"), std::string::npos) << last_error_message();
  EXPECT_THROW(proxy.serve(std::make_shared<Throws>()), Error);
}

class Counts final : public Served {
 public:
  Poll poll() override {
    ++polls;
    return Poll::idle;
  }
  void cancel(pw_status, const std::string&) override {}
  std::atomic<int> polls{0};
};

TEST(PlanProxy, WhatIsForgottenIsLookedAtNoMore) {
  Ranks ranks(1);
  Proxy& proxy = *Proxy::of(ranks[0]);
  const auto first = std::make_shared<Counts>(), second = std::make_shared<Counts>();
  proxy.serve(first);
  proxy.serve(second);
  while (first->polls == 0 || second->polls == 0) std::this_thread::yield();
  proxy.forget(*first);
  const int polls = first->polls;
  const int others = second->polls;
  while (second->polls < others + 3) std::this_thread::yield();
  EXPECT_EQ(first->polls, polls);
  EXPECT_EQ(first.use_count(), 1);
}

}  // namespace
}  // namespace pw
