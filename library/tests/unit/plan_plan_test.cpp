// Plans between several ranks of one process: what is sent, in what order, and what is refused.
#include "plan/plan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "base/status.h"
#include "plan_ring.h"

namespace pw {
namespace {

using testing::kSecond;
using testing::range;
using testing::Ranks;
using testing::Ring;

class PlanSizes : public ::testing::TestWithParam<std::tuple<int, uint64_t>> {};

TEST_P(PlanSizes, EveryEpochBringsItsOwnData) {
  const auto [size, bytes] = GetParam();
  Ring({.ranks = size, .bytes = bytes}).turn(20);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlanSizes,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(1, 8, 4096, 16385, 200000)));

TEST(Plan, MemoryThatPeersCannotMapGoesThroughSlots) {
  Ring ring({.bytes = 100000, .mappable = false});
  EXPECT_NE(ring.plan(0).describe().find("plan/slots"), std::string::npos) << ring.plan(0).describe();
  ring.turn(5);
}

TEST(Plan, GoesByTheMethodThatItMayTake) {
  for (const char* method : {"plan/slots", "plan/straight", "plan/posted"})
    for (const uint64_t bytes : {8, 100'000}) {
      Ring ring({.bytes = bytes, .paths = method});
      EXPECT_NE(ring.plan(0).describe().find(method), std::string::npos) << ring.plan(0).describe();
      ring.turn(20);
    }
}

// The bytes of memory that this process shares or can share with other ranks.
uint64_t shared_bytes() {
  std::map<std::pair<dev_t, ino_t>, uint64_t> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    struct stat of{};
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("/memfd:") &&
        ::stat(entry.path().c_str(), &of) == 0)
      files[{of.st_dev, of.st_ino}] = static_cast<uint64_t>(of.st_size);
  }
  uint64_t sum = 0;
  for (const auto& [file, bytes] : files) sum += bytes;
  return sum;
}

TEST(Plan, OnlyMessagesThatGoThroughSlotsTakeMemoryForThem) {
  constexpr uint64_t kBytes = 4 << 20;
  const auto taken = [](const char* method) {
    const uint64_t before = shared_bytes();
    Ring ring({.bytes = kBytes, .paths = method});
    return shared_bytes() - before;
  };
  const uint64_t straight = taken("plan/straight"), slots = taken("plan/slots");
  EXPECT_GE(straight, 4 * kBytes) << "the regions of two ranks";
  EXPECT_EQ(slots - straight, 4 * kBytes) << "two slots for each of two messages";
}

TEST(Plan, TheSenderChooses) {
  Ring ring({.bytes = 4096, .paths = "plan/straight", .paths_of_rank_1 = "plan/slots"});
  for (const int rank : {0, 1}) {
    const std::string said = ring.plan(rank).describe();
    EXPECT_NE(said.find(rank == 0 ? "to rank 1, tag 7: plan/straight" : "to rank 0, tag 7: plan/slots"),
              std::string::npos);
    EXPECT_NE(said.find(rank == 1 ? "from rank 0, tag 7: plan/straight" : "from rank 1, tag 7: plan/slots"),
              std::string::npos);
  }
  ring.turn(20);
}

TEST(Plan, APrepareThatFailedIsNotRepeated) {
  Ranks ranks(2);
  ranks.each([&](int rank) {
    const auto region = ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(ranks[rank], host_device());
    if (rank == 0)
      plan.send(1, 7, region, range(0, 64));
    else
      plan.receive(0, 7, region, range(0, 32));
    for (const char* why : {"give both the same size", "an earlier prepare of this plan failed"}) try {
        plan.prepare(false);
        ADD_FAILURE() << "it was prepared";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      }
  });
}

TEST(Plan, AMethodThatCannotBeIsRefusedWithTheReason) {
  try {
    Ring ring({.bytes = 64, .paths = "plan/straight", .mappable = false});
    FAIL() << "it was prepared";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("plan/straight: this rank does not map the receiver's region"),
              std::string::npos)
        << error.what();
  }
}

/// A team of one that is lost before any callback tells of it.
class Silent final : public Team {
 public:
  [[nodiscard]] int rank() const override { return team_->rank(); }
  [[nodiscard]] int size() const override { return team_->size(); }
  [[nodiscard]] uint64_t job() const override { return team_->job(); }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return team_->secret_for(purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) override {
    return team_->all_gather(mine, timeout_ns);
  }
  [[nodiscard]] bool lost(int) const noexcept override { return !none_lost(); }
  [[nodiscard]] int any_lost() const noexcept override { return none_lost() ? -1 : 0; }
  [[nodiscard]] std::string describe_loss(int) const override { return "it was lost"; }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)>) override { return nullptr; }
  void lose() { some_lost_ = true; }

 private:
  std::unique_ptr<Team> team_ = make_team(0, 1, [](std::span<std::byte>) {});
};

TEST(Plan, TellsOfALossAsSoonAsTheTeamKnows) {
  Silent team;
  Context context(team);
  Signal signal(context, 0);
  Plan plan(context, host_device());
  plan.wait(signal, 1);
  plan.prepare(true);
  EXPECT_EQ(plan.status(), PW_OK);
  team.lose();
  EXPECT_EQ(plan.status(), PW_PEER_LOST);
  EXPECT_NE(std::string(last_error_message()).find("it was lost"), std::string::npos) << last_error_message();
}

TEST(Plan, StreamsKeepTheirOrder) {
  for (const uint64_t bytes : {uint64_t{512}, uint64_t{50000}}) Ring({.bytes = bytes}).turn_on_streams(200);
}

// A sender that is always ready against a receiver that takes its time: nothing is overwritten before it was
// used.
TEST(Plan, AFastSenderDoesNotOverrunASlowReceiver) {
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{40000}})
    Ring({.bytes = bytes}).turn(30, [](int rank) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
}

// Rank 2 does not take part, and is in step with the others afterwards.
TEST(Plan, SomeRanksPrepareAPlanAmongThemselves) {
  Ranks ranks(3);
  std::vector<std::shared_ptr<Region>> regions;
  for (int rank = 0; rank < 3; ++rank) regions.push_back(ranks[rank].allocate({PW_HOST, 0}, 16));
  std::vector<std::unique_ptr<Plan>> plans[3];  // none ends before the last: TSan knows nothing of memory
                                                // that one rank unmaps and another maps
  ranks.each([&](int rank) {
    const auto region = regions[static_cast<size_t>(rank)];
    auto* words = reinterpret_cast<uint64_t*>(region->address());
    const auto exchange = [&](const std::vector<int>& among, int right, int left) {
      Plan& plan = *plans[rank].emplace_back(std::make_unique<Plan>(ranks[rank], host_device()));
      plan.send(right, 5, region, range(0, 8));
      plan.receive(left, 5, region, range(8, 8));
      plan.prepare_among(among);
      words[0] = static_cast<uint64_t>(rank) + 100;
      words[1] = 0;
      ASSERT_EQ(plan.start(), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK);
      EXPECT_EQ(words[1], static_cast<uint64_t>(left) + 100);
    };
    for (int time = 0; time < 3 && rank < 2; ++time) exchange({1, 0}, 1 - rank, 1 - rank);
    exchange({0, 1, 2}, (rank + 1) % 3, (rank + 2) % 3);
  });
}

TEST(Plan, WhomAPlanIsPreparedAmongIsChecked) {
  Ranks ranks(2);
  const auto region = ranks[0].allocate({PW_HOST, 0}, 16);
  const std::pair<std::vector<int>, const char*> wrong[] = {
      {{1}, "without rank 0, which prepares it"},
      {{0, 2}, "with rank 2; the team has ranks 0 to 1"},
      {{0, 0}, "with rank 0 twice"},
      {{0}, "without rank 1, which it has a send or receive with"}};
  for (const auto& [among, said] : wrong) {
    Plan plan(ranks[0], host_device());
    plan.send(1, 5, region, range(0, 8));
    try {
      plan.prepare_among(among);
      FAIL() << said;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
  }
}

TEST(Plan, OneSidedOperationsNotifyAndWait) {
  Ranks ranks(2);
  constexpr uint64_t kBytes = 3000;
  std::vector<std::shared_ptr<Region>> regions(2);
  std::vector<std::unique_ptr<Signal>> arrived(2), ready(2);
  std::vector<std::shared_ptr<Remote>> to(2), notify_arrived(2), notify_ready(2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<size_t>(rank);
    regions[at] = ranks[rank].allocate({PW_HOST, 0}, 2 * kBytes);
    arrived[at] = std::make_unique<Signal>(ranks[rank], 1 - rank);
    ready[at] = std::make_unique<Signal>(ranks[rank], 1 - rank);
  }
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<size_t>(rank);
    to[at] = ranks.import(rank, 1 - rank, *regions[1 - at]);
    notify_arrived[at] = ranks.import(rank, *arrived[1 - at]);
    notify_ready[at] = ranks.import(rank, *ready[1 - at]);
  }
  ranks.each([&](int rank) {
    const auto at = static_cast<size_t>(rank);
    Plan plan(ranks[rank], host_device());
    const Notification notification{notify_arrived[at].get(), 3};
    plan.notify({notify_ready[at].get(), 1});
    plan.after(*ready[at], 0, 1);
    plan.put(*to[at], range(kBytes, kBytes), regions[at], range(0, kBytes), &notification);
    plan.wait(*arrived[at], 3);
    plan.prepare(true);
    for (int epoch = 1; epoch <= 50; ++epoch) {
      std::memset(regions[at]->address(), 10 * rank + epoch, kBytes);
      ASSERT_EQ(plan.start(), PW_OK);
      ASSERT_EQ(plan.finish(20 * kSecond), PW_OK) << last_error_message();
      for (uint64_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(regions[at]->address()[kBytes + i], static_cast<std::byte>(10 * (1 - rank) + epoch));
    }
    ASSERT_EQ(ranks[rank].notify(notification), PW_INVALID_ARGUMENT) << "the plan owns the signal";
  });
  // Once the plans are gone the signals go on from where they are.
  EXPECT_EQ(arrived[0]->value(), 150u);
  EXPECT_EQ(ranks[1].notify({notify_arrived[1].get(), 1}), PW_OK) << last_error_message();
  EXPECT_EQ(arrived[0]->value(), 151u);
}

TEST(Plan, SaysWhatIsWrong) {
  Ring ring({.bytes = 64});
  Plan& plan = ring.plan(0);
  EXPECT_EQ(plan.finish(0), PW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(last_error_message()).find("not started"), std::string::npos);
  EXPECT_EQ(plan.start(), PW_OK);
  EXPECT_EQ(plan.start(), PW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(last_error_message()).find("not finished"), std::string::npos);
  EXPECT_EQ(plan.finish(kSecond / 100), PW_TIMEOUT) << "the other rank has not started";
  int foreign = 0;
  EXPECT_EQ(plan.enqueue(&foreign, PlanPart::start), PW_INVALID_ARGUMENT);
  EXPECT_THROW(plan.send(1, 8, ring.region(0), range(0, 8)), Error) << "it is prepared";
  Plan unprepared(ring.ranks[0], host_device());
  EXPECT_EQ(unprepared.start(), PW_INVALID_ARGUMENT);
  unprepared.send(1, 1, ring.region(0), range(0, 8));
  EXPECT_THROW(unprepared.send(1, 1, ring.region(0), range(8, 8)), Error) << "the same tag";
  EXPECT_THROW(unprepared.send(2, 1, ring.region(0), range(0, 8)), Error) << "no such rank";
  EXPECT_THROW(unprepared.send(1, 2, ring.region(0), range(100, 100)), Error) << "past the end";
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
  Ring ring({.bytes = 64});
  ring.expect_timeout(kSecond / 50);
  EXPECT_EQ(ring.plan(0).start(), PW_TIMEOUT) << "a cancelled plan does nothing any more";
}

TEST(Plan, ClosingTheContextEndsItsPlans) { Ring({.bytes = 64}).expect_closed(); }

TEST(Plan, PartnersAndTheirPartnersLearnThatOneCannotPrepare) {
  Ranks ranks(4);
  std::atomic<int> refused{0};
  ranks.each([&](int rank) {
    const auto region = ranks[rank].allocate({PW_HOST, 0}, 64);
    Plan plan(ranks[rank], host_device());
    if (rank == 0) plan.send(1, 1, region, range(0, 16));
    if (rank == 1) plan.receive(0, 1, region, range(0, 24));
    if (rank == 1) plan.send(2, 2, region, range(0, 8));
    if (rank == 2) plan.receive(1, 2, region, range(0, 8));
    try {
      plan.prepare(false);
      EXPECT_EQ(rank, 3) << "which has no lane";
    } catch (const Error& error) {
      refused += rank != 3;
      EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find("24"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("16"), std::string::npos) << error.what();
    }
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace pw
