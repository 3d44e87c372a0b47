// The staging service against initiators that the test plays itself, so that they can die in the middle of a
// chunk and the work can come when the test wants it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <string>

#include "base/descriptor.h"
#include "base/status.h"
#include "device/host/host.h"
#include "made_up_device.h"
#include "progress/progress.h"
#include "transport/staged/service.h"

namespace pw {
namespace {

constexpr uint64_t kChunk = 4096;
constexpr RingDivision kDivision{kChunk, kRingBytes};
constexpr int kRanks = 3;

/// Rank 0 of three, whose peers are lost when the test says so.
class MortalTeam final : public Team {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return kRanks; }
  [[nodiscard]] uint64_t job() const override { return 1; }
  [[nodiscard]] Secret secret_for(std::string_view) const override { return {}; }
  std::vector<std::byte> all_gather(std::span<const std::byte>, uint64_t) override { return {}; }
  [[nodiscard]] bool lost(int rank) const noexcept override { return dead[rank]; }
  [[nodiscard]] int any_lost() const noexcept override { return -1; }
  [[nodiscard]] std::string describe_loss(int) const override { return {}; }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)>) override { return nullptr; }

  std::atomic<bool> dead[kRanks] = {};
};

/// A peer with a channel to rank 0.
class Initiator {
 public:
  Initiator(int rank, Control& target) : target_(target) {
    Mailbox& mailbox = target.mailbox[rank];
    mailbox.rank = rank;
    mailbox.identity = memfd_identity(memfd_.get());
    mailbox.descriptor = memfd_.get() + 1;
    announce_work(target, wakeup_pipe_);
    while (header().attached == 0) sched_yield();
    end_.use(host_device(), kDivision);
  }

  void post_put(const Region& to, std::vector<std::byte> from) {
    from_ = std::move(from);
    const Layout layout = contiguous_layout(from_.size());
    PostedRequest& posted = header().request[requested_ % kRequests];
    posted.request = {Op::put, to.slot(), to.generation(), 0, layout};
    posted.division = kDivision;
    end_.begin(true, layout, from_.data());
    header().requested.store(++requested_);
    announce_work(target_, wakeup_pipe_);
  }
  void fill(int chunks) {
    for (int i = 0; i < chunks; ++i) ASSERT_EQ(end_.pass(0), PW_OK);
  }
  [[nodiscard]] ChannelHeader& header() const { return end_.header(); }

  /// How often this process has the channel mapped: twice while it is served.
  [[nodiscard]] int mappings() const {
    struct stat status{};
    fstat(memfd_.get(), &status);
    const std::string inode = " " + std::to_string(status.st_ino) + " ";
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(inode) != std::string::npos;
    return count;
  }

 private:
  static void* map(int memfd) {
    return mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  }

  Control& target_;
  WakeupPipe wakeup_pipe_{getpid(), target_.wakeup_pipe, target_.wakeup_pipe_identity};
  std::vector<std::byte> from_;  ///< before the channel's end, which copies from it
  Descriptor memfd_{make_memfd("peerway-staging-test", kChannelBytes)};
  ChannelEnd end_{map(memfd_.get())};
  uint64_t requested_ = 0;
};

class Staging : public ::testing::Test {
 protected:
  Staging() {
    progress.add(service);
    progress.start();
  }
  static std::vector<std::byte> pattern(uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(1 + i % 251);
    return data;
  }
  [[nodiscard]] bool holds(const std::vector<std::byte>& bytes) const {
    return std::equal(bytes.begin(), bytes.end(), region->address());
  }
  void wait_until_nobody_watches() {
    while (control.control().watchers != 0) sched_yield();
  }

  MortalTeam team;
  ControlSegment control;
  Registry registry{control};
  const std::vector<ProcessFacts> processes{kRanks, facts_of_process(control)};
  Importer importer{control, 0, processes};
  std::shared_ptr<Region> region = registry.allocate(host_device(), 16 * kChunk);
  testing::HeldDevice slow;  // before the service, whose queues are of it
  StagingService service{team, control, importer, registry};
  Progress progress{team, control};
};

TEST_F(Staging, ServesAPut) {
  Initiator peer(1, control.control());
  const auto bytes = pattern(3 * kChunk + 8);
  peer.post_put(*region, bytes);
  peer.fill(4);
  while (peer.header().completed != 1) sched_yield();
  EXPECT_EQ(peer.header().failed, 0u);
  EXPECT_TRUE(holds(bytes));
}

TEST_F(Staging, APeerThatDiesInTheMiddleIsLetGo) {
  Initiator mortal(1, control.control()), other(2, control.control());
  mortal.post_put(*region, pattern(4 * kChunk));
  mortal.fill(2);
  while (mortal.header().drained != 2) sched_yield();
  EXPECT_EQ(mortal.mappings(), 2);
  team.dead[1] = true;
  while (mortal.mappings() != 1) sched_yield();
  EXPECT_EQ(mortal.header().completed, 0u);
  region.reset();  // returns: nobody serves a request for it any more

  region = registry.allocate(host_device(), 16 * kChunk);
  const auto bytes = pattern(kChunk);
  other.post_put(*region, bytes);
  other.fill(1);
  while (other.header().completed != 1) sched_yield();
  EXPECT_TRUE(holds(bytes));
}

TEST_F(Staging, APeerThatDiesIsLetGoByAHelper) {
  Initiator mortal(1, control.control());
  mortal.post_put(*region, pattern(4 * kChunk));
  mortal.fill(1);
  Polling help(progress, nullptr);
  while (mortal.header().drained != 1) help.poll();
  team.dead[1] = true;
  while (mortal.mappings() != 1) help.poll();
  EXPECT_EQ(mortal.header().completed, 0u);
}

/// A peer has sent half of what goes to memory of a device that is slow. Turned by the test alone.
class SlowTarget : public Staging {
 protected:
  SlowTarget() {
    progress.stop();
    stalled.post_put(*slow_region, pattern(2 * kChunk));
    stalled.fill(1);
    while (slow.given == 0) turn();
    live.post_put(*region, bytes);
    live.fill(3);
    slow.until = [this] { return live.header().completed == 1; };
  }
  void turn() {
    slow.next_turn();
    service.poll();
  }

  std::shared_ptr<Region> slow_region = registry.allocate(slow, 2 * kChunk);
  Initiator stalled{1, control.control()}, live{2, control.control()};
  const std::vector<std::byte> bytes = pattern(3 * kChunk);
};

TEST_F(SlowTarget, WhileADeviceLeavesAClosedRegionOthersAreServed) {
  const Region* closed = slow_region.get();  // the service has it, too
  auto closing = std::async(std::launch::async, [this] { slow_region.reset(); });
  while (!closed->closed()) sched_yield();
  while (live.header().completed == 0) turn();
  EXPECT_FALSE(slow.waited_for) << "a turn of the service waited for the device";
  EXPECT_TRUE(holds(bytes));
  while (closing.wait_for(std::chrono::seconds(0)) != std::future_status::ready) turn();
  stalled.fill(1);
  while (stalled.header().completed == 0) turn();
  EXPECT_EQ(stalled.header().failed, failure_word(1, PW_STALE_KEY));
}

TEST_F(SlowTarget, ARegionIsHeldUntilTheLastCopyToItIsDone) {
  slow.until = [] { return false; };
  stalled.fill(1);
  while (slow.given < 2) turn();
  turn();  // ends the request
  auto closing = std::async(std::launch::async, [this] { slow_region.reset(); });
  for (int i = 0; i < 20; ++i) {
    turn();
    EXPECT_NE(closing.wait_for(std::chrono::milliseconds(1)), std::future_status::ready)
        << "the device still copies to it";
  }
  slow.until = [] { return true; };
  while (closing.wait_for(std::chrono::seconds(0)) != std::future_status::ready) turn();
  EXPECT_FALSE(slow.waited_for) << "a turn of the service waited for the device";
  EXPECT_EQ(stalled.header().completed, 1u);
  EXPECT_EQ(stalled.header().failed, 0u);
}

TEST_F(SlowTarget, WhileADeviceLeavesAPeerThatDiedOthersAreServed) {
  team.dead[1] = true;
  while (live.header().completed == 0) turn();
  EXPECT_FALSE(slow.waited_for) << "a turn of the service waited for the device";
  EXPECT_EQ(stalled.mappings(), 2) << "the device may still use it";
  while (stalled.mappings() != 1) turn();
  slow_region.reset();  // returns: nobody serves a request for it any more
}

TEST_F(Staging, AHelperServesWhileTheThreadSleeps) {
  Initiator peer(1, control.control());
  wait_until_nobody_watches();
  Polling help(progress, nullptr);
  while (control.control().watchers != 1) help.poll();
  const auto bytes = pattern(2 * kChunk);
  peer.post_put(*region, bytes);
  peer.fill(2);
  while (peer.header().completed != 1) help.poll();
  EXPECT_TRUE(holds(bytes));
}

TEST_F(Staging, TheThreadGoesOnWhereAHelperLeaves) {
  Initiator peer(1, control.control());
  const auto bytes = pattern(2 * kChunk);
  wait_until_nobody_watches();
  {
    Polling help(progress, nullptr);
    while (control.control().watchers != 1) help.poll();
    peer.post_put(*region, bytes);
    peer.fill(1);
    while (peer.header().drained != 1) help.poll();
  }
  peer.fill(1);
  while (peer.header().completed != 1) sched_yield();
  EXPECT_TRUE(holds(bytes));
}

TEST_F(Staging, AHelperThatNeverHadToWaitLeavesNoTrace) {
  wait_until_nobody_watches();
  {
    Polling help(progress, nullptr);
    help.poll();
    EXPECT_EQ(control.control().watchers, 0u);
  }
  EXPECT_EQ(control.control().watchers, 0u);
}

TEST_F(Staging, ARequestThatLeavesTheRegionFailsAndItsChunksPass) {
  Initiator peer(1, control.control());
  peer.post_put(*region, pattern(17 * kChunk));
  peer.fill(17);
  while (peer.header().completed != 1) sched_yield();
  EXPECT_EQ(peer.header().failed, failure_word(1, PW_OUT_OF_RANGE));
  EXPECT_EQ(peer.header().drained, 17u);
}

}  // namespace
}  // namespace pw
