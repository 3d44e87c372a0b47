// The replay of a trace's steps: whatever happened, it ends as it did when nothing is shortened.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/status.h"
#include "trace/analysis/replay.h"

namespace pw::trace {
namespace {

struct Job {
  std::vector<int64_t> begin, duration, lane{0}, offset;
  std::vector<int32_t> part, before, after, on, meeting, awaits;

  [[nodiscard]] Steps steps() const {
    return {begin, duration, part, before, lane, after, on, offset, meeting, awaits, 4};
  }
  [[nodiscard]] int64_t end() const {
    int64_t last = 0;
    for (size_t i = 0; i < begin.size(); ++i) last = std::max(last, begin[i] + duration[i]);
    return last;
  }
};

/// Steps and needs without sense: also such as contradict each other, as traces of bad clocks do.
Job random_job(std::mt19937& random) {
  const auto below = [&](int most) { return static_cast<int32_t>(random() % static_cast<unsigned>(most)); };
  Job job;
  for (int lanes = 1 + below(5); lanes > 0; --lanes) {
    int64_t now = 0;
    for (int steps = below(12); steps > 0; --steps) {
      now += below(20);
      job.begin.push_back(now);
      job.duration.push_back(below(15));
      now += job.duration.back();
      job.part.push_back(below(4));
      job.before.push_back(below(4));
      job.meeting.push_back(-1);
      job.awaits.push_back(-1);
    }
    job.lane.push_back(static_cast<int64_t>(job.begin.size()));
  }
  const auto count = static_cast<int32_t>(job.begin.size());
  for (int32_t step = 0; step < count; ++step) {
    if (below(3) == 0) job.meeting[static_cast<size_t>(step)] = below(std::min(3, count));
    if (below(3) == 0) job.awaits[static_cast<size_t>(step)] = below(std::min(3, count));
    for (int needs = below(3); needs > 0; --needs) {
      job.after.push_back(step);
      job.on.push_back(below(count));
      job.offset.push_back(below(10));
    }
  }
  const auto most = count > 0 ? std::ranges::max(job.meeting) : -1;
  for (auto& awaited : job.awaits) awaited = std::min(awaited, most);
  return job;
}

TEST(TraceReplay, EndsWhenTheJobDidAndThePathIsAsLongForAnyNeeds) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Job job = random_job(random);
    const Replay replay(job.steps());
    ASSERT_EQ(replay.length(std::vector<double>(4, 1.0)), job.end()) << "job " << i;
    int64_t length = 0;
    for (const auto& stretch : replay.path()) length += stretch.end - stretch.begin;
    ASSERT_EQ(length, job.end()) << "job " << i;
    EXPECT_LE(replay.length(std::vector<double>{0.5, 1, 1, 1}), job.end());
  }
}

TEST(TraceReplay, ShorteningOnePartMovesWhatNeedsIt) {
  Job job;  // two lanes: the second's step needs that the first's has begun, 100 after
  job.begin = {100, 20};
  job.duration = {30, 130};
  job.lane = {0, 1, 2};
  job.part = {1, 2};
  job.before = {0, 3};
  job.meeting = {-1, -1};
  job.awaits = {-1, -1};
  job.after = {1};
  job.on = {0};
  job.offset = {0};
  const Replay replay(job.steps());
  EXPECT_EQ(replay.length(std::vector<double>{1, 1, 1, 1}), 150);
  EXPECT_EQ(replay.length(std::vector<double>{0.5, 1, 1, 1}), 100);  // it begins at 50
  EXPECT_EQ(replay.length(std::vector<double>{0, 1, 1, 1}), 70);     // now the second begins later, at 20
  EXPECT_EQ(replay.length(std::vector<double>{1, 1, 1, 0}), 150);
}

TEST(TraceReplay, AStepMayWaitForAMeetingToWhichAnotherOfItsLaneCame) {
  Job job;  // each of two lanes comes by its first step; the first lane waits for all in its second
  job.begin = {10, 20, 100};
  job.duration = {5, 90, 5};
  job.lane = {0, 2, 3};
  job.part = {1, 1, 1};
  job.before = {0, 0, 2};
  job.meeting = {0, -1, 0};
  job.awaits = {-1, 0, -1};
  const Replay replay(job.steps());
  EXPECT_EQ(replay.length(std::vector<double>{1, 1, 1, 1}), 110);
  EXPECT_EQ(replay.length(std::vector<double>{1, 1, 0.5, 1}), 60);  // the other comes at 50
}

TEST(TraceReplay, ColumnsThatDoNotFitAreRefused) {
  std::mt19937 random(3);
  Job job = random_job(random);
  job.part.push_back(0);
  EXPECT_THROW(Replay{job.steps()}, Error);
}

}  // namespace
}  // namespace pw::trace
