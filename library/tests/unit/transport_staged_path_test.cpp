// The initiator's side of `staged` with memory of a device that is slow, turned by the test alone.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <future>

#include "context_ranks.h"
#include "made_up_device.h"
#include "transport/staged/staged.h"

namespace pw {
namespace {

using testing::kHost;
using testing::Ranks;

/// Rank 0 has a put under way from a slow device to rank 1, and one from its own memory to rank 2, which is
/// larger than the ring.
class SlowSource : public ::testing::Test {
 protected:
  static constexpr uint64_t kSlowBytes = uint64_t{3} << 20, kLiveBytes = kRingBytes + (uint64_t{1} << 20);

  SlowSource() {
    put(1, *slow_region_);
    put(2, *region_);
    slow_.until = [this] { return device_is_done_; };
  }
  void put(int rank, Region& from) {
    auto& target = targets_.emplace_back(ranks_[rank].allocate(kHost, from.bytes()));
    remotes_.push_back(ranks_.import(0, rank, *target));
    const Transfer transfer{Op::put, remotes_.back().get(), &from, 0, 0, contiguous_layout(from.bytes())};
    staged_.prepare(transfer);
    EXPECT_EQ(staged_.start(transfer), PW_OK);
  }
  void turn() {
    slow_.next_turn();
    staged_.poll();
    sched_yield();
  }
  void complete_the_live_one() {
    while (!staged_.reached(2, staged_.mark(2))) turn();
    EXPECT_FALSE(slow_.waited_for) << "a turn of the path waited for the device";
    EXPECT_EQ(staged_.outcome(2, staged_.mark(2)), PW_OK);
  }

  bool device_is_done_ = false;
  Ranks ranks_{3};
  testing::HeldDevice slow_;
  Registry registry_{ranks_[0].control()};
  Progress progress_{ranks_[0].team(), ranks_[0].control()};
  AttachmentNumbers numbers_;
  std::shared_ptr<Region> slow_region_ = registry_.allocate(slow_, kSlowBytes);
  std::shared_ptr<Region> region_ = registry_.allocate(host_device(), kLiveBytes);
  std::vector<std::shared_ptr<Region>> targets_;
  std::vector<std::shared_ptr<Remote>> remotes_;
  Staged staged_{
      {ranks_[0].team(), ranks_[0].control(), ranks_[0].importer(), registry_, progress_, numbers_}};
};

TEST_F(SlowSource, WhileADeviceLeavesAClosedRegionTransfersWithOthersGoOn) {
  const Region* closed = slow_region_.get();  // the queue has it, too
  auto closing = std::async(std::launch::async, [this] { slow_region_.reset(); });
  while (!closed->closed()) sched_yield();
  complete_the_live_one();
  device_is_done_ = true;
  while (closing.wait_for(std::chrono::seconds(0)) != std::future_status::ready) turn();
  while (!staged_.reached(1, staged_.mark(1))) turn();
  EXPECT_EQ(staged_.outcome(1, staged_.mark(1)), PW_STALE_KEY);
}

TEST_F(SlowSource, WhileADeviceReadsWhatWasForAClosedRankTransfersWithOthersGoOn) {
  targets_.front().reset();
  ranks_.close(1);
  const Mark mark = staged_.mark(1);
  complete_the_live_one();
  slow_.next_turn();
  EXPECT_FALSE(staged_.reached(1, mark)) << "who sees the failure may free the memory";
  device_is_done_ = true;
  EXPECT_TRUE(staged_.reached(1, mark));
  EXPECT_EQ(staged_.outcome(1, mark), PW_CLOSED);
}

}  // namespace
}  // namespace pw
