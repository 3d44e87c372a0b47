// Plans between several ranks of one process: what is sent, in what order, and what is refused.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "context_ranks.h"
#include "device/host/host.h"
#include "plan/guard.h"

namespace pw {
namespace {

using testing::Ranks;
using testing::run;

constexpr uint64_t kSecond = 1'000'000'000;

// A ring of ranks, each with a plan that sends `bytes` bytes to the next and receives as many from the one
// before.
struct Ring {
  Ring(int size, uint64_t bytes_of_message, bool mappable = true) : ranks(size), bytes(bytes_of_message) {
    parts.resize(static_cast<size_t>(size));
    ranks.each([&](int rank) {
      Part_& part = parts[static_cast<size_t>(rank)];
      Context& context = ranks[rank];
      part.memory.resize(2 * bytes);
      part.region = mappable ? context.allocate({PW_HOST, 0}, 2 * bytes)
                             : context.add(part.memory.data(), part.memory.size());
      part.plan = std::make_unique<Plan>(context, host_device());
      part.plan->send((rank + 1) % size, 7, part.region, run(0, bytes));
      part.plan->receive((rank + size - 1) % size, 7, part.region, run(bytes, bytes));
      part.plan->prepare(false);
    });
  }

  struct Part_ {
    std::vector<std::byte> memory;
    std::shared_ptr<Region> region;
    std::unique_ptr<Plan> plan;
  };

  void fill(int rank, uint64_t epoch) {
    std::mt19937_64 random(static_cast<uint64_t>(rank) << 32 | epoch);
    auto* byte = reinterpret_cast<unsigned char*>(parts[static_cast<size_t>(rank)].region->address());
    for (uint64_t i = 0; i < bytes; ++i) byte[i] = static_cast<unsigned char>(random());
  }
  bool arrived(int rank, uint64_t epoch) {
    const int size = static_cast<int>(parts.size());
    std::mt19937_64 random(static_cast<uint64_t>((rank + size - 1) % size) << 32 | epoch);
    const auto* byte =
        reinterpret_cast<const unsigned char*>(parts[static_cast<size_t>(rank)].region->address()) + bytes;
    for (uint64_t i = 0; i < bytes; ++i)
      if (byte[i] != static_cast<unsigned char>(random())) return false;
    return true;
  }
  Plan& plan(int rank) { return *parts[static_cast<size_t>(rank)].plan; }

  Ranks ranks;
  uint64_t bytes;
  std::vector<Part_> parts;
};

class PlanSizes : public ::testing::TestWithParam<std::tuple<int, uint64_t>> {};

TEST_P(PlanSizes, EveryEpochBringsItsOwnData) {
  const auto [size, bytes] = GetParam();
  Ring ring(size, bytes);
  ring.ranks.each([&](int rank) {
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      ring.fill(rank, epoch);
      ASSERT_EQ(ring.plan(rank).start(), PW_OK) << last_error_message();
      ASSERT_EQ(ring.plan(rank).finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_TRUE(ring.arrived(rank, epoch)) << "rank " << rank << ", epoch " << epoch;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlanSizes,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(1, 8, 4096, 16385, 200000)));

TEST(Plan, MemoryThatPeersCannotMapGoesThroughSlots) {
  Ring ring(2, 100000, false);
  EXPECT_NE(ring.plan(0).describe().find("through slots"), std::string::npos) << ring.plan(0).describe();
  ring.ranks.each([&](int rank) {
    for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
      ring.fill(rank, epoch);
      ASSERT_EQ(ring.plan(rank).start(), PW_OK);
      ASSERT_EQ(ring.plan(rank).finish(20 * kSecond), PW_OK) << last_error_message();
      ASSERT_TRUE(ring.arrived(rank, epoch));
    }
  });
}

// The host runs ahead by all iterations; fill and check are calls in the stream.
TEST(Plan, StreamsKeepTheirOrder) {
  for (const uint64_t bytes : {uint64_t{512}, uint64_t{50000}}) {
    Ring ring(2, bytes);
    ring.ranks.each([&](int rank) {
      void* stream = host_device().make_stream();
      struct Call {
        Ring* ring;
        int rank;
        uint64_t epoch;
        bool good;
      };
      std::vector<Call> calls(200);
      for (uint64_t epoch = 1; epoch <= calls.size(); ++epoch) {
        Call& call = calls[epoch - 1] = {&ring, rank, epoch, false};
        host_device().call(
            stream,
            [](void* user) {
              auto& c = *static_cast<Call*>(user);
              c.ring->fill(c.rank, c.epoch);
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
}

// A sender that is always ready against a receiver that takes its time: nothing is overwritten before it was
// used.
TEST(Plan, AFastSenderDoesNotOverrunASlowReceiver) {
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{40000}}) {
    Ring ring(2, bytes);
    ring.ranks.each([&](int rank) {
      for (uint64_t epoch = 1; epoch <= 30; ++epoch) {
        ring.fill(rank, epoch);
        ASSERT_EQ(ring.plan(rank).start(), PW_OK);
        ASSERT_EQ(ring.plan(rank).finish(20 * kSecond), PW_OK) << last_error_message();
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_TRUE(ring.arrived(rank, epoch)) << "rank " << rank << ", epoch " << epoch;
      }
    });
  }
}

TEST(Plan, OneSidedOperationsRaiseAndWait) {
  Ranks ranks(2);
  constexpr uint64_t kBytes = 3000;
  std::vector<std::shared_ptr<Region>> regions(2);
  std::vector<std::unique_ptr<Signal>> arrived(2), ready(2);
  std::vector<std::unique_ptr<Remote>> to(2), raise_arrived(2), raise_ready(2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<size_t>(rank);
    regions[at] = ranks[rank].allocate({PW_HOST, 0}, 2 * kBytes);
    arrived[at] = std::make_unique<Signal>(ranks[rank], 1 - rank);
    ready[at] = std::make_unique<Signal>(ranks[rank], 1 - rank);
  }
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<size_t>(rank);
    to[at] = ranks.import(rank, 1 - rank, *regions[1 - at]);
    raise_arrived[at] = ranks.import(rank, *arrived[1 - at]);
    raise_ready[at] = ranks.import(rank, *ready[1 - at]);
  }
  ranks.each([&](int rank) {
    const auto at = static_cast<size_t>(rank);
    Plan plan(ranks[rank], host_device());
    const Raise raise{raise_arrived[at].get(), 3};
    plan.raise({raise_ready[at].get(), 1});
    plan.after(*ready[at], 1, 0);
    plan.put(*to[at], run(kBytes, kBytes), regions[at], run(0, kBytes), &raise);
    plan.wait(*arrived[at], 3);
    plan.prepare(true);
    for (int epoch = 1; epoch <= 50; ++epoch) {
      std::memset(regions[at]->address(), 10 * rank + epoch, kBytes);
      ASSERT_EQ(plan.start(), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      for (uint64_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(regions[at]->address()[kBytes + i], static_cast<std::byte>(10 * (1 - rank) + epoch));
    }
    ASSERT_EQ(ranks[rank].raise(raise), PW_INVALID_ARGUMENT) << "the plan owns the signal";
  });
  // Once the plans are gone the signals go on from where they are.
  EXPECT_EQ(arrived[0]->value(), 150u);
  EXPECT_EQ(ranks[1].raise({raise_arrived[1].get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(arrived[0]->value(), 151u);
}

TEST(Plan, SaysWhatIsWrong) {
  Ring ring(2, 64);
  Plan& plan = ring.plan(0);
  EXPECT_EQ(plan.finish(0), PW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(last_error_message()).find("not started"), std::string::npos);
  EXPECT_EQ(plan.start(), PW_OK);
  EXPECT_EQ(plan.start(), PW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(last_error_message()).find("not finished"), std::string::npos);
  EXPECT_EQ(plan.finish(kSecond / 100), PW_TIMEOUT) << "the other rank has not started";
  int foreign = 0;
  EXPECT_EQ(plan.enqueue(&foreign, Part::start), PW_INVALID_ARGUMENT);
  EXPECT_THROW(plan.send(1, 8, ring.parts[0].region, run(0, 8)), Error) << "it is prepared";
  Plan unprepared(ring.ranks[0], host_device());
  EXPECT_EQ(unprepared.start(), PW_INVALID_ARGUMENT);
  unprepared.send(1, 1, ring.parts[0].region, run(0, 8));
  EXPECT_THROW(unprepared.send(1, 1, ring.parts[0].region, run(8, 8)), Error) << "the same tag";
  EXPECT_THROW(unprepared.send(2, 1, ring.parts[0].region, run(0, 8)), Error) << "no such rank";
  EXPECT_THROW(unprepared.send(1, 2, ring.parts[0].region, run(100, 100)), Error) << "past the end";
  EXPECT_THROW(unprepared.prepare(true), Error) << "a send needs the other ranks";
  ring.ranks.each([&](int rank) {
    if (rank == 1) {
      EXPECT_EQ(ring.plan(1).start(), PW_OK);
      EXPECT_EQ(ring.plan(1).finish(20 * kSecond), PW_OK);
    } else {
      EXPECT_EQ(plan.finish(20 * kSecond), PW_OK) << "a finish that timed out can be taken up again";
    }
  });
}

TEST(Plan, AWaitInAStreamEndsInTime) {
  Ring ring(2, 64);
  ring.plan(0).set_timeout(kSecond / 50);
  void* stream = host_device().make_stream();
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK);
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK) << "the host runs ahead";
  host_device().free_stream(stream);
  EXPECT_EQ(ring.plan(0).status(), PW_TIMEOUT);
  EXPECT_NE(std::string(last_error_message()).find("rank 1"), std::string::npos) << last_error_message();
  EXPECT_EQ(ring.plan(0).start(), PW_TIMEOUT) << "a cancelled plan does nothing any more";
}

TEST(Plan, ClosingTheContextEndsItsPlans) {
  Ring ring(2, 64);
  void* stream = host_device().make_stream();
  ASSERT_EQ(ring.plan(0).enqueue(stream, Part::both), PW_OK);
  ring.ranks[0].close();
  host_device().free_stream(stream);
  EXPECT_EQ(ring.plan(0).status(), PW_CLOSED);
}

TEST(Plan, AllRanksLearnThatOneCannotPrepare) {
  Ranks ranks(3);
  std::atomic<int> refused{0};
  ranks.each([&](int rank) {
    const auto region = ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(ranks[rank], host_device());
    if (rank == 0) plan.send(1, 1, region, run(0, 16));
    if (rank == 1) plan.receive(0, 1, region, run(0, 24));
    try {
      plan.prepare(false);
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find("24"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("16"), std::string::npos) << error.what();
    }
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace pw
