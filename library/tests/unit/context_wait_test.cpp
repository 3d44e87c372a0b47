// Waits with the wait policy `blocking`: they sleep, and what they wait for wakes them, as do loss, close and
// deadline.
#include <gtest/gtest.h>

#include <thread>

#include "base/status.h"
#include "context_ranks.h"
#include "device/device.h"
#include "peerway/peerway.h"
#include "plan/plan.h"

namespace pw {
namespace {

using testing::range;
using testing::Ranks;

constexpr uint64_t kLongWait = 60'000'000'000;

struct Blocking : ::testing::Test {
  Blocking() {
    for (int rank : {0, 1}) ranks[rank].waiting()->set_blocking(true);
  }
  Sleepers& sleepers(int rank) { return ranks[rank].waiting()->sleepers(); }

  // Runs `wait` on a thread of rank 0, and `act` once that goes to sleep. What `wait` gave.
  template <typename Wait, typename Act>
  pw_status asleep(Wait&& wait, Act&& act) {
    pw_status ended = PW_INTERNAL;
    std::thread waiter([&] { ended = wait(); });
    while (sleepers(0).count.load() == 0) std::this_thread::yield();
    act();
    waiter.join();
    EXPECT_EQ(sleepers(0).count.load(), 0u);
    return ended;
  }

  // Data may be found just before the sleep; but in many rounds some sleeps must end by a wake-up.
  void expect_woken() { EXPECT_NE(sleepers(0).woken.load(), 0u); }

  Ranks ranks{2};
};

constexpr int kRounds = 20;

TEST_F(Blocking, ASignalNotifiedAloneWakes) {
  Signal signal(ranks[0], 1);
  const auto remote = ranks.import(1, signal);
  for (uint64_t round = 1; round <= kRounds; ++round)
    EXPECT_EQ(asleep([&] { return signal.wait(round, kLongWait); },
                     [&] { EXPECT_EQ(ranks[1].notify({remote.get(), 1}), PW_OK); }),
              PW_OK);
  expect_woken();
}

class BlockingPut : public Blocking, public ::testing::WithParamInterface<const char*> {};

TEST_P(BlockingPut, TheSignalOfAPutWakes) {
  ranks[1].resolver().use(GetParam());
  auto target = ranks[0].allocate({PW_HOST, 0}, 1 << 20);
  auto source = ranks[1].allocate({PW_HOST, 0}, 1 << 20);
  const auto remote = ranks.import(1, 0, *target);
  Signal signal(ranks[0], 1);
  const auto notified = ranks.import(1, signal);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const Notification notification{notified.get(), 1};
    EXPECT_EQ(asleep([&] { return signal.wait(round, kLongWait); },
                     [&] {
                       EXPECT_EQ(ranks[1].put_blocks(*remote, range(0, 1 << 20), *source, range(0, 1 << 20),
                                                     &notification),
                                 PW_OK);
                     }),
              PW_OK);
    EXPECT_EQ(ranks[1].flush(0, PW_FOREVER), PW_OK);
  }
  expect_woken();
}

INSTANTIATE_TEST_SUITE_P(Paths, BlockingPut, ::testing::Values("peer/shm", "peer/cma", "staged"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase_if(name, [](char letter) { return letter == '/'; });
                           return name;
                         });

TEST_F(Blocking, AWaitEndsAtItsDeadline) {
  Signal signal(ranks[0], 1);
  EXPECT_EQ(signal.wait(1, 3'000'000), PW_TIMEOUT);
}

TEST_F(Blocking, TheCloseOfTheContextWakes) {
  Signal signal(ranks[0], 1);
  EXPECT_EQ(asleep([&] { return signal.wait(1, kLongWait); }, [&] { ranks[0].close(); }), PW_CLOSED);
}

TEST_F(Blocking, ThePolicyCountsForTheWaitsThatBeginAfterwards) {
  Signal signal(ranks[0], 1);
  const auto remote = ranks.import(1, signal);
  ranks[0].waiting()->set_blocking(false);
  std::thread waiter([&] { EXPECT_EQ(signal.wait(1, kLongWait), PW_OK); });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(sleepers(0).count.load(), 0u);
    std::this_thread::yield();
  }
  EXPECT_EQ(ranks[1].notify({remote.get(), 1}), PW_OK);
  waiter.join();
}

// A message each way in each epoch; rank 1 starts its plan only once rank 0 sleeps.
struct BlockingPlan : Blocking {
  BlockingPlan() {
    ranks.each([&](int rank) {
      memory[rank] = ranks[rank].allocate({PW_HOST, 0}, 128);
      plan[rank] = std::make_unique<Plan>(ranks[rank], host_device());
      plan[rank]->operations().send(1 - rank, 7, memory[rank], range(0, 64));
      plan[rank]->operations().receive(1 - rank, 7, memory[rank], range(64, 64));
      plan[rank]->prepare(false);
    });
  }
  pw_status whole(int rank) {
    if (const pw_status started = plan[rank]->start(); started != PW_OK) return started;
    return plan[rank]->finish(kLongWait);
  }
  std::shared_ptr<Region> memory[2];
  std::unique_ptr<Plan> plan[2];
};

TEST_F(BlockingPlan, APeersMarksWakeAFinishOfTheHost) {
  for (int epoch = 0; epoch < kRounds; ++epoch)
    EXPECT_EQ(asleep([&] { return whole(0); }, [&] { EXPECT_EQ(whole(1), PW_OK); }), PW_OK);
  expect_woken();
}

TEST_F(BlockingPlan, APeersMarksWakeAStream) {
  void* stream = host_device().make_stream();
  for (int epoch = 0; epoch < kRounds; ++epoch)
    EXPECT_EQ(asleep(
                  [&] {
                    EXPECT_EQ(plan[0]->enqueue(stream, PlanPart::both), PW_OK);
                    pw_status failed = PW_OK;
                    while (!host_device().stream_idle(stream, failed)) std::this_thread::yield();
                    return plan[0]->status();
                  },
                  [&] { EXPECT_EQ(whole(1), PW_OK); }),
              PW_OK);
  expect_woken();
  host_device().free_stream(stream);
}

TEST_F(BlockingPlan, TheCloseOfTheContextWakesAFinish) {
  EXPECT_EQ(asleep([&] { return whole(0); }, [&] { ranks[0].close(); }), PW_CLOSED);
}

TEST_F(BlockingPlan, ALongWaitEndsAtThePlansTimeout) {
  plan[0]->set_timeout(3'000'000);
  EXPECT_EQ(plan[0]->start(), PW_OK);
  EXPECT_EQ(plan[0]->finish(kLongWait), PW_TIMEOUT);
}

}  // namespace
}  // namespace pw
