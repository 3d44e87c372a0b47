// The queue of transfers that cannot go on: their order, what a closed region and a lost end make of them.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <future>
#include <vector>

#include "base/status.h"
#include "context_ranks.h"
#include "transport/transfer_queue.h"

namespace pw {
namespace {

using testing::kHost;
using testing::Ranks;

/// The other end does nothing until the test opens the gate; it notes what it was asked to store. Half open,
/// it is asked for the first transfer, whose memory a device then uses for as long as the test says.
class Gated final : public TransferQueue {
 public:
  Gated(Progress& progress, std::atomic<uint64_t>& waiting) : TransferQueue(1, progress, waiting) {}

  bool open = false, half_open = false, lost = false;
  std::atomic<bool> in_use = false;  ///< the memory of the first
  std::vector<uint64_t> stored;      ///< totals, in their order
  int posts = 0;

 private:
  pw_status go_on(QueuedTransfer& next, bool& done) override {
    if (half_open) next.posted = true;
    if (!open) return PW_OK;
    next.posted = done = true;
    ++posts;
    if (next.signal != nullptr) stored.push_back(next.total);
    return PW_OK;
  }
  bool leave_memory() override { return unused(); }
  bool unused() override { return !in_use; }
  [[nodiscard]] uint64_t chunks() const override { return 0; }
  [[nodiscard]] bool over() const override { return lost; }
  pw_status why_over() override { return fail(PW_PEER_LOST, "rank 1 was lost"); }
  [[nodiscard]] bool served(uint64_t count) const override { return posts >= static_cast<int>(count); }
  pw_status outcome_there() override { return PW_OK; }
};

class TransferQueueTest : public ::testing::Test {
 protected:
  /// A put that notifies the signal by 1.
  pw_status put(Region& from) {
    SignalTurn turn;
    EXPECT_EQ(turn.begin({notified_.get(), 1}, nullptr), PW_OK);
    EXPECT_TRUE(turn.can_store_now());
    return queue_.start({Op::put, remote_.get(), &from, 0, 0, contiguous_layout(64)}, &turn);
  }

  Ranks ranks_{2};
  std::shared_ptr<Region> target_ = ranks_[1].allocate(kHost, 64);
  std::shared_ptr<Remote> remote_ = ranks_.import(0, 1, *target_);
  Signal signal_{ranks_[1], 0};
  std::shared_ptr<Remote> notified_ = ranks_.import(0, signal_);
  std::shared_ptr<Region> region_ = ranks_[0].allocate(kHost, 64), other_ = ranks_[0].allocate(kHost, 64);
  std::atomic<uint64_t> waiting_{0};
  Gated queue_{ranks_[0].progress(), waiting_};
};

TEST_F(TransferQueueTest, WhatCannotGoWaitsAndGoesInItsOrder) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put(*region_), PW_OK);
  const Mark mark = queue_.mark();
  EXPECT_EQ(waiting_, 3u);
  EXPECT_FALSE(queue_.poll());
  EXPECT_FALSE(queue_.reached(mark));
  queue_.open = true;
  EXPECT_TRUE(queue_.poll());
  EXPECT_TRUE(queue_.reached(mark));
  EXPECT_EQ(queue_.outcome(mark), PW_OK);
  EXPECT_EQ(queue_.stored, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(waiting_, 0u);
}

TEST_F(TransferQueueTest, AClosedRegionTakesItsNotificationBackAndTheFlushTells) {
  ASSERT_EQ(put(*region_), PW_OK);
  ASSERT_EQ(put(*other_), PW_OK);
  ASSERT_EQ(put(*region_), PW_OK);
  auto closing = std::async(std::launch::async, [this] { other_.reset(); });  // waits until nobody uses it
  while (closing.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) queue_.poll();
  queue_.open = true;
  queue_.poll();
  const Mark mark = queue_.mark();
  ASSERT_TRUE(queue_.reached(mark));
  EXPECT_EQ(queue_.posts, 3) << "both ends count alike";
  EXPECT_EQ(queue_.stored, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(notified_->sender()->notified, 2u);
  EXPECT_EQ(queue_.outcome(mark), PW_STALE_KEY);
  EXPECT_EQ(queue_.outcome(mark), PW_OK) << "told once";
}

TEST_F(TransferQueueTest, WhatADeviceStillUsesIsLeftOnceItIsDone) {
  queue_.half_open = queue_.in_use = true;
  ASSERT_EQ(put(*region_), PW_OK);
  const Region* closed = region_.get();  // the queue has it, too
  auto closing = std::async(std::launch::async, [this] { region_.reset(); });
  while (!closed->closed()) sched_yield();
  queue_.open = true;
  EXPECT_FALSE(queue_.poll());  // returns
  EXPECT_EQ(queue_.posts, 0) << "nothing goes on that uses the memory again";
  EXPECT_EQ(put(*other_), PW_OK) << "nobody has the lock";
  queue_.in_use = false;
  EXPECT_TRUE(queue_.poll());
  closing.get();
  EXPECT_EQ(queue_.posts, 2);
  EXPECT_EQ(queue_.outcome(queue_.mark()), PW_STALE_KEY);
}

TEST_F(TransferQueueTest, ALostRankIsToldOfOnceADeviceIsDone) {
  queue_.half_open = queue_.in_use = true;
  ASSERT_EQ(put(*region_), PW_OK);
  queue_.lost = true;
  EXPECT_FALSE(queue_.poll());  // returns
  EXPECT_FALSE(queue_.reached(queue_.mark())) << "who sees the failure may free the memory";
  queue_.in_use = false;
  EXPECT_TRUE(queue_.reached(queue_.mark()));
  EXPECT_EQ(queue_.outcome(queue_.mark()), PW_PEER_LOST);
}

TEST_F(TransferQueueTest, ALostRankEndsAllThatWaits) {
  ASSERT_EQ(put(*region_), PW_OK);
  queue_.lost = true;
  EXPECT_TRUE(queue_.reached(queue_.mark()));
  region_.reset();  // whoever sees the failure may free the memory
  region_ = ranks_[0].allocate(kHost, 64);
  EXPECT_EQ(queue_.outcome(queue_.mark()), PW_PEER_LOST);
  EXPECT_EQ(put(*region_), PW_PEER_LOST);
}

}  // namespace
}  // namespace pw
