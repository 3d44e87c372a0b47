// The queues of a staging ring, with devices whose copies end when the test says so; and the walk over the
// chunks.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "made_up_device.h"
#include "transport/staged/chunks.h"

namespace pw {
namespace {

/// A queue that is never done before its device says so.
class SlowQueue final : public Queue {
 public:
  explicit SlowQueue(const std::atomic<bool>& done, const pw_status& end) : done_(done), end_(end) {}
  pw_status copy(const Copy&, CopyBy) override { return PW_OK; }
  pw_status write(uint64_t*, uint64_t) override { return PW_OK; }
  bool idle(pw_status& status) override {
    status = end_;
    return done_;
  }

 private:
  const std::atomic<bool>& done_;
  const pw_status& end_;
};

class SlowDevice final : public testing::MadeUpDevice {
 public:
  std::unique_ptr<Queue> make_queue() override {
    ++queues;
    return std::make_unique<SlowQueue>(done, end);
  }
  void pin(void*, uint64_t bytes) override {
    if (refuses_pins) throw Error(PW_NO_MEMORY, "nothing can be pinned");
    pinned += bytes;
  }
  void unpin(void*) noexcept override { pinned = 0; }

  std::atomic<bool> done{true};
  pw_status end = PW_OK;
  bool refuses_pins = false;
  uint64_t pinned = 0;
  int queues = 0;
};

class StagingQueues : public ::testing::Test {
 protected:
  SlowDevice first, second;
  std::byte ring[64];
};

TEST_F(StagingQueues, OneEndsBeforeTheOtherBeginsAndNobodyWaits) {
  RingQueues queues(ring);
  queues.use(first, 64);
  first.done = false;
  EXPECT_EQ(queues.use(second, 64), nullptr);
  EXPECT_EQ(second.pinned, 0u);
  first.done = true;
  EXPECT_NE(queues.use(second, 64), nullptr);
}

TEST_F(StagingQueues, OneIsNotWaitedForWhileItGoesOn) {
  RingQueues queues(ring);
  Queue* queue = queues.use(first, 64);
  first.done = false;
  EXPECT_EQ(queues.use(first, 64), queue);
  EXPECT_EQ(first.queues, 1);
  first.done = true;
}

TEST_F(StagingQueues, TheFailureOfOneIsToldToTheOther) {
  RingQueues queues(ring);
  queues.use(first, 64);
  first.end = PW_DEVICE;
  EXPECT_THROW(queues.use(second, 64), Error);
  EXPECT_NO_THROW(queues.use(second, 64));  // told once: the service goes on without the device that failed
}

TEST_F(StagingQueues, TheRingIsPinnedForAsLongAsTheQueuesLive) {
  {
    RingQueues queues(ring);
    queues.use(first, 64);
    EXPECT_EQ(first.pinned, 64);
    second.refuses_pins = true;
    EXPECT_THROW(queues.use(second, 64), Error);
    second.refuses_pins = false;
    queues.use(second, 64);  // the next transfer tries again
  }
  EXPECT_EQ(first.pinned, 0u);
  EXPECT_EQ(second.pinned, 0u);
}

TEST_F(StagingQueues, TheRingIsPinnedAsFarAsItIsUsed) {
  RingQueues queues(ring);
  Queue* queue = queues.use(first, 16);
  EXPECT_EQ(first.pinned, 16u);
  EXPECT_EQ(queues.use(first, 64), queue);
  EXPECT_EQ(first.pinned, 64u);
  queues.use(first, 16);
  EXPECT_EQ(first.pinned, 64u);
}

TEST_F(StagingQueues, NothingIsUnderWayWhileThePinnedPartGrows) {
  RingQueues queues(ring);
  queues.use(first, 16);
  first.end = PW_DEVICE;  // seen only by who waits for the queue
  queues.use(first, 16);
  EXPECT_THROW(queues.use(first, 64), Error);
  first.end = PW_OK;
}

/// Does at once what it is given, and fails when it is told to.
class PromptQueue final : public Queue {
 public:
  pw_status copy(const Copy& copy, CopyBy) override {
    if (fails) return PW_DEVICE;
    std::memcpy(copy.to, copy.from, copy.layout.shape.bytes());
    return PW_OK;
  }
  pw_status write(uint64_t* word, uint64_t value) override {
    *word = value;
    return PW_OK;
  }
  bool idle(pw_status& status) override {
    status = PW_OK;
    return true;
  }
  bool fails = false;
};

TEST(ChunkWalk, WhatOneEndFillsTheOtherEmpties) {
  std::vector<std::byte> source(1000), target(1000), slot(256);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
  PromptQueue queue;
  ChunkWalk fill, empty;
  fill.begin(true, contiguous_layout(1000), 256, source.data(), &queue);
  empty.begin(false, contiguous_layout(1000), 256, target.data(), &queue);
  int chunks = 0;
  for (; fill.has_chunk(); ++chunks) {
    EXPECT_EQ(fill.bytes(), chunks < 3 ? 256u : 232u);
    ASSERT_EQ(fill.copy(slot.data()), PW_OK);
    ASSERT_EQ(empty.copy(slot.data()), PW_OK);
  }
  EXPECT_EQ(chunks, 4);
  EXPECT_FALSE(empty.has_chunk());
  EXPECT_EQ(target, source);
}

TEST(ChunkWalk, AfterAFailureTheRestPassesWithoutItsBytes) {
  std::vector<std::byte> target(1000), slot(256, std::byte{1});
  PromptQueue queue;
  ChunkWalk walk;
  walk.begin(false, contiguous_layout(1000), 256, target.data(), &queue);
  queue.fails = true;
  EXPECT_EQ(walk.copy(slot.data()), PW_DEVICE);
  queue.fails = false;
  EXPECT_FALSE(walk.has_memory());
  int rest = 0;
  for (; walk.has_chunk(); ++rest) EXPECT_EQ(walk.copy(slot.data()), PW_OK);
  EXPECT_EQ(rest, 3);
  EXPECT_EQ(target, std::vector<std::byte>(1000));
}

}  // namespace
}  // namespace pw
