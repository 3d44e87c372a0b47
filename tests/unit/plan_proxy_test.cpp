// Plans whose ranks do not reach one another's memory: what the proxy thread does for them, and how it ends.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "context_ranks.h"
#include "device/host/host.h"
#include "plan/plan.h"
#include "plan/proxy.h"

namespace pw {
namespace {

using testing::Ranks;
using testing::run;

constexpr uint64_t kSecond = 1'000'000'000;

// Every byte depends on the rank, the epoch and the place.
void fill(std::byte* bytes, uint64_t count, int rank, uint64_t epoch) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) << 32 | epoch);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random());
}

bool holds(const std::byte* bytes, uint64_t count, int rank, uint64_t epoch) {
  std::vector<std::byte> expected(count);
  fill(expected.data(), count, rank, epoch);
  return std::memcmp(bytes, expected.data(), count) == 0;
}

// Ranks that use only the path named, so that nothing is mapped.
struct Far {
  explicit Far(int size, const char* paths = "staged") : ranks(size) {
    for (int rank = 0; rank < size; ++rank) ranks[rank].resolver().use(paths);
  }
  Ranks ranks;
};

// A ring: every rank sends `bytes` bytes to the next and receives as many from the one before.
struct Ring : Far {
  Ring(int size, uint64_t bytes_of_message, const char* paths = "staged")
      : Far(size, paths), bytes(bytes_of_message) {
    parts.resize(static_cast<size_t>(size));
    ranks.each([&](int rank) {
      Member& part = parts[static_cast<size_t>(rank)];
      part.region = ranks[rank].allocate({PW_HOST, 0}, 2 * bytes);
      part.plan = std::make_unique<Plan>(ranks[rank], host_device());
      part.plan->send((rank + 1) % size, 7, part.region, run(0, bytes));
      part.plan->receive(before(rank), 7, part.region, run(bytes, bytes));
      part.plan->prepare(false);
    });
  }

  struct Member {
    std::shared_ptr<Region> region;
    std::unique_ptr<Plan> plan;
  };

  [[nodiscard]] int before(int rank) const {
    const int size = static_cast<int>(parts.size());
    return (rank + size - 1) % size;
  }
  std::byte* memory(int rank) { return parts[static_cast<size_t>(rank)].region->address(); }
  void write(int rank, uint64_t epoch) { fill(memory(rank), bytes, rank, epoch); }
  bool arrived(int rank, uint64_t epoch) { return holds(memory(rank) + bytes, bytes, before(rank), epoch); }
  Plan& plan(int rank) { return *parts[static_cast<size_t>(rank)].plan; }

  uint64_t bytes;
  std::vector<Member> parts;
};

class PostedSizes : public ::testing::TestWithParam<std::tuple<int, uint64_t>> {};

TEST_P(PostedSizes, EveryEpochBringsItsOwnData) {
  const auto [size, bytes] = GetParam();
  Ring ring(size, bytes);
  EXPECT_NE(ring.plan(0).describe().find("by the proxy thread"), std::string::npos)
      << ring.plan(0).describe();
  ring.ranks.each([&](int rank) {
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      ring.write(rank, epoch);
      ASSERT_EQ(ring.plan(rank).start(), PW_OK) << last_error_message();
      ASSERT_EQ(ring.plan(rank).finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_TRUE(ring.arrived(rank, epoch)) << "rank " << rank << ", epoch " << epoch;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, PostedSizes,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Values(1, 4096, 300000)));

TEST(PlanProxy, OneEndThatRestrictsItsPathsIsEnough) {
  Ranks ranks(2);
  ranks[1].resolver().use("staged");
  ranks.each([&](int rank) {
    const auto region = ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(ranks[rank], host_device());
    if (rank == 0) plan.send(1, 1, region, run(0, 64));
    if (rank == 1) plan.receive(0, 1, region, run(0, 64));
    plan.prepare(false);
    EXPECT_NE(plan.describe().find("by the proxy thread"), std::string::npos) << plan.describe();
    for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
      if (rank == 0) fill(region->address(), 64, 0, epoch);
      ASSERT_EQ(plan.start(), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_TRUE(holds(region->address(), 64, 0, epoch));
    }
  });
}

TEST(PlanProxy, PathsOverMappingsNeedNoProxy) {
  Ring ring(2, 64, "peer");
  EXPECT_EQ(ring.plan(0).describe().find("proxy"), std::string::npos) << ring.plan(0).describe();
}

// The host runs ahead by all iterations; fill and check are calls in the stream.
TEST(PlanProxy, TheHostRunsAheadOfStreams) {
  Ring ring(2, 5000);
  ring.ranks.each([&](int rank) {
    void* stream = host_device().make_stream();
    struct Call {
      Ring* ring;
      int rank;
      uint64_t epoch;
      bool good;
    };
    std::vector<Call> calls(300);
    for (uint64_t epoch = 1; epoch <= calls.size(); ++epoch) {
      Call& call = calls[epoch - 1] = {&ring, rank, epoch, false};
      host_device().call(
          stream,
          [](void* user) {
            auto& c = *static_cast<Call*>(user);
            c.ring->write(c.rank, c.epoch);
          },
          &call);
      const bool in_one = epoch % 3 == 0;
      ASSERT_EQ(ring.plan(rank).enqueue(stream, in_one ? Part::both : Part::start), PW_OK);
      if (!in_one) {
        ASSERT_EQ(ring.plan(rank).enqueue(stream, Part::finish), PW_OK);
      }
      host_device().call(
          stream,
          [](void* user) {
            auto& c = *static_cast<Call*>(user);
            c.good = c.ring->arrived(c.rank, c.epoch);
          },
          &call);
    }
    host_device().free_stream(stream);
    EXPECT_EQ(ring.plan(rank).status(), PW_OK) << last_error_message();
    for (const Call& call : calls) EXPECT_TRUE(call.good) << "rank " << rank << ", epoch " << call.epoch;
  });
}

// Rank 2 starts only when rank 1 has what rank 0 sends it after what it sends to rank 2.
TEST(PlanProxy, ALaneThatWaitsHoldsUpNoOther) {
  Far far(3);
  std::atomic<bool> rank_1_has_it{false};
  far.ranks.each([&](int rank) {
    const auto region = far.ranks[rank].allocate({PW_HOST, 0}, 128);
    Plan plan(far.ranks[rank], host_device());
    if (rank == 0) {
      plan.send(2, 1, region, run(0, 64));
      plan.send(1, 1, region, run(64, 64));
      fill(region->address(), 128, 0, 1);
    } else {
      plan.receive(0, 1, region, run(rank == 2 ? 0 : 64, 64));
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
TEST(PlanProxy, OneSidedOperationsRaiseAndWait) {
  Far far(2);
  constexpr uint64_t kBytes = 3000;
  auto target = far.ranks[0].allocate({PW_HOST, 0}, 2 * kBytes);
  auto local = far.ranks[1].allocate({PW_HOST, 0}, 2 * kBytes);
  Signal arrived(far.ranks[0], 1), ready(far.ranks[1], 0);
  const auto to = far.ranks.import(1, 0, *target);
  const auto raise_arrived = far.ranks.import(1, arrived);
  const auto raise_ready = far.ranks.import(0, ready);
  {
    Plan plan(far.ranks[1], host_device());
    const Raise raise{raise_arrived.get(), 3};
    plan.after(ready, 1, 0);
    plan.put(*to, run(0, kBytes), local, run(0, kBytes), &raise);
    plan.get(*to, run(kBytes, kBytes), local, run(kBytes, kBytes));
    plan.prepare(true);
    EXPECT_EQ(far.ranks[1].raise(raise), PW_INVALID_ARGUMENT) << "the plan owns the signal";
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      fill(target->address() + kBytes, kBytes, 0, epoch);
      fill(local->address(), kBytes, 1, epoch);
      ASSERT_EQ(plan.start(), PW_OK);
      EXPECT_EQ(arrived.value(), 3 * (epoch - 1)) << "the other rank is not ready";
      ASSERT_EQ(far.ranks[0].raise({raise_ready.get(), 1}), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_EQ(arrived.wait(3 * epoch, 20 * kSecond), PW_OK);
      ASSERT_TRUE(holds(target->address(), kBytes, 1, epoch));
      ASSERT_TRUE(holds(local->address() + kBytes, kBytes, 0, epoch));
    }
  }
  // Once the plan is gone the signal goes on from where it is.
  EXPECT_EQ(far.ranks[1].raise({raise_arrived.get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(arrived.value(), 61u);
}

TEST(PlanProxy, APlanThatWaitsInVainNamesTheRank) {
  Ring ring(2, 64);
  ring.plan(0).set_timeout(kSecond / 20);
  void* stream = host_device().make_stream();
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK);
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK) << "the host runs ahead";
  host_device().free_stream(stream);
  EXPECT_EQ(ring.plan(0).status(), PW_TIMEOUT);
  EXPECT_NE(std::string(last_error_message()).find("rank 1"), std::string::npos) << last_error_message();
  ring.parts[0].plan.reset();  // while the proxy thread still waits for the other rank's consent
}

TEST(PlanProxy, ASenderThatWaitsInVainNamesTheRank) {
  Far far(2);
  far.ranks.each([&](int rank) {
    const auto region = far.ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(far.ranks[rank], host_device());
    rank == 0 ? plan.send(1, 1, region, run(0, 64)) : plan.receive(0, 1, region, run(0, 64));
    plan.set_timeout(kSecond / 20);
    plan.prepare(false);
    if (rank == 1) return;
    EXPECT_EQ(plan.start(), PW_OK);
    EXPECT_EQ(plan.finish(20 * kSecond), PW_TIMEOUT);
    EXPECT_NE(std::string(last_error_message()).find("rank 1"), std::string::npos) << last_error_message();
  });
}

TEST(PlanProxy, ClosingTheContextEndsItsPlans) {
  Ring ring(2, 64);
  void* stream = host_device().make_stream();
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK);
  ring.ranks[0].close();
  host_device().free_stream(stream);
  EXPECT_EQ(ring.plan(0).status(), PW_CLOSED);
}

TEST(PlanProxy, AFailureOfThePathCancelsThePlanAndSaysWhy) {
  Far far(2);
  auto target = far.ranks[0].allocate({PW_HOST, 0}, 64);
  const auto local = far.ranks[1].allocate({PW_HOST, 0}, 64);
  const auto to = far.ranks.import(1, 0, *target);
  Plan plan(far.ranks[1], host_device());
  plan.put(*to, run(0, 64), local, run(0, 64), nullptr);
  plan.prepare(true);
  Plan other(far.ranks[1], host_device());
  const auto another = far.ranks[0].allocate({PW_HOST, 0}, 64);
  const auto to_another = far.ranks.import(1, 0, *another);
  other.put(*to_another, run(0, 64), local, run(0, 64), nullptr);
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
    rank == 0 ? plan.send(1, 1, region, run(0, 64)) : plan.receive(0, 1, region, run(0, 64));
    EXPECT_THROW(plan.prepare(false), Error);
  });
}

class Throws final : public Served {
 public:
  Look look() override { throw std::logic_error("a defect"); }
  void cancel(pw_status, const std::string&) override {}
};

TEST(PlanProxy, AThreadThatFailsCancelsAllItServes) {
  Ring ring(2, 64);
  Proxy& proxy = *Proxy::of(ring.ranks[0]);
  proxy.serve(std::make_shared<Throws>());
  EXPECT_EQ(ring.plan(0).start() == PW_OK ? ring.plan(0).finish(20 * kSecond) : ring.plan(0).status(),
            PW_INTERNAL);
  EXPECT_NE(std::string(last_error_message()).find("a defect"), std::string::npos) << last_error_message();
  EXPECT_THROW(proxy.serve(std::make_shared<Throws>()), Error);
}

class Counts final : public Served {
 public:
  Look look() override {
    ++looks;
    return Look::idle;
  }
  void cancel(pw_status, const std::string&) override {}
  std::atomic<int> looks{0};
};

TEST(PlanProxy, WhatIsForgottenIsLookedAtNoMore) {
  Ranks ranks(1);
  Proxy& proxy = *Proxy::of(ranks[0]);
  const auto first = std::make_shared<Counts>(), second = std::make_shared<Counts>();
  proxy.serve(first);
  proxy.serve(second);
  while (first->looks == 0 || second->looks == 0) std::this_thread::yield();
  proxy.forget(*first);
  const int looks = first->looks;
  const int others = second->looks;
  while (second->looks < others + 3) std::this_thread::yield();
  EXPECT_EQ(first->looks, looks);
  EXPECT_EQ(first.use_count(), 1);
}

}  // namespace
}  // namespace pw
