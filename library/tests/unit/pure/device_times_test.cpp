// The times that a traced plan's workers take: one record for each start or finish, once the last has ended.
#include <gtest/gtest.h>

#include <array>

#include "peerway/device.cuh"

namespace peerway::device {
namespace {

struct TimesTest : testing::Test {
  TimesTest() {
    times.record = records.data();
    times.mask = records.size() - 1;
  }
  void begin(unsigned part, unsigned workers) { detail::note_begin(Thread{}, &times, part, workers); }
  void end(unsigned part, unsigned workers) { detail::note_end(Thread{}, &times, part, workers); }

  std::array<StepRecord, 4> records{};
  StepTimes times{};
};

TEST_F(TimesTest, TheLastWorkerToEndWritesTheRecord) {
  for (int worker = 0; worker < 3; ++worker) begin(StepTimes::start, 3);
  end(StepTimes::start, 3);
  end(StepTimes::start, 3);
  EXPECT_EQ(records[0].number, 0u);
  const Word before = detail::clock_ns();
  end(StepTimes::start, 3);
  EXPECT_EQ(records[0].number, 1u);
  EXPECT_EQ(records[0].part, StepTimes::start);
  EXPECT_LE(records[0].begin, before);
  EXPECT_GE(records[0].end, before);
}

TEST_F(TimesTest, ARecordBeginsWithTheFirstWorker) {
  begin(StepTimes::finish, 2);
  const Word after_first = detail::clock_ns();
  while (detail::clock_ns() == after_first) continue;
  begin(StepTimes::finish, 2);
  end(StepTimes::finish, 2);
  end(StepTimes::finish, 2);
  EXPECT_LE(records[0].begin, after_first);
}

TEST_F(TimesTest, PartsOfKernelsAreCountedApartFromThoseOfLaunches) {
  begin(StepTimes::start, 2);  // a launch of two blocks, under way
  begin(StepTimes::in_kernels, 1);
  end(StepTimes::in_kernels, 1);
  EXPECT_EQ(records[0].part, StepTimes::in_kernels);
  begin(StepTimes::start, 2);
  end(StepTimes::start, 2);
  end(StepTimes::start, 2);
  EXPECT_EQ(records[1].part, StepTimes::start);
}

TEST_F(TimesTest, WhatTheHostSaysOfALaunchIsInItsRecord) {
  const unsigned launched = 7u << StepTimes::part_bits | StepTimes::finish;
  begin(launched, 2);
  begin(launched, 2);
  end(launched, 2);
  end(launched, 2);
  EXPECT_EQ(records[0].part, launched);
  EXPECT_EQ(times.part[StepTimes::finish].ended, 2u);
}

TEST_F(TimesTest, RecordsGoRoundAndKeepTheirNumbers) {
  for (int turn = 0; turn < 6; ++turn) {
    begin(StepTimes::both, 1);
    end(StepTimes::both, 1);
  }
  EXPECT_EQ(records[0].number, 5u);
  EXPECT_EQ(records[1].number, 6u);
  EXPECT_EQ(records[3].number, 4u);
}

TEST(Times, AHandleOfAPlanThatIsNotTracedHasNone) {
  std::array<unsigned long long, 64> memory{};
  pw_plan_handle plan{};
  plan.epoch = memory.data();
  EXPECT_EQ(detail::times_of(plan), nullptr);
  plan.times = 8;
  EXPECT_EQ(static_cast<void*>(detail::times_of(plan)), memory.data() + 8);
}

}  // namespace
}  // namespace peerway::device
