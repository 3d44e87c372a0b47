// The lower envelope against brute force on random lines, ties, noise and the limit on ranges.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "base/status.h"
#include "route/envelope.h"

namespace pw::route {
namespace {

/// fixed + per_byte * bytes from 1 B on.
Candidate straight(const char* name, double fixed, double per_byte, double spread = 0) {
  const auto at = [&](double x) { return fixed + per_byte * x; };
  return {.name = name, .line = CostLine({{1, at(1), spread}, {1 << 20, at(1 << 20), spread}})};
}

Candidate random_candidate(std::mt19937& random, double spread) {
  std::uniform_real_distribution<double> octave(0.5, 6), factor(0.3, 3);
  std::vector<Point> points;
  double bytes = std::exp2(octave(random)), cost = factor(random);
  for (int i = 0, n = 1 + static_cast<int>(random() % 8); i < n; ++i) {
    points.push_back({static_cast<uint64_t>(bytes) + 1, cost, spread});
    bytes = (bytes + 2) * std::exp2(octave(random));
    cost *= factor(random) * (1 + static_cast<double>(random() % 3));
  }
  Candidate c{.name = "random", .line = CostLine(points)};
  if (random() % 4 == 0) c.from = static_cast<uint64_t>(bytes);
  return c;
}

std::vector<size_t> all(std::span<const Candidate> candidates) {
  std::vector<size_t> indices(candidates.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

double least_cost(std::span<const Candidate> candidates, uint64_t bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& c : candidates) least = std::min(least, c.at(bytes));
  return least;
}

std::set<uint64_t> probes(std::span<const Candidate> candidates, std::span<const Range> ranges) {
  std::set<uint64_t> sizes;
  for (uint64_t bytes = 1; bytes < kEnd / 2; bytes += bytes / 5 + 1) sizes.insert(bytes);
  const auto around = [&](uint64_t bytes) {
    for (int64_t d : {-1, 0, 1})
      if (const uint64_t b = bytes + static_cast<uint64_t>(d); b >= 1 && b < kEnd) sizes.insert(b);
  };
  for (const Candidate& c : candidates)
    for (const Point& point : c.line.points()) around(point.bytes), around(c.from);
  for (const Range& r : ranges) around(r.from), around(r.to);
  return sizes;
}

const Range& range_of(std::span<const Range> ranges, uint64_t bytes) {
  for (const Range& r : ranges)
    if (bytes >= r.from && bytes < r.to) return r;
  ADD_FAILURE() << "no range holds " << bytes;
  return ranges.front();
}

void expect_no_gaps(std::span<const Range> ranges, SizeRange sizes = {}) {
  ASSERT_FALSE(ranges.empty());
  EXPECT_EQ(ranges.front().from, sizes.from);
  EXPECT_EQ(ranges.back().to, sizes.to);
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_LT(ranges[i].from, ranges[i].to);
    if (i == 0) continue;
    EXPECT_EQ(ranges[i].from, ranges[i - 1].to);
    EXPECT_NE(ranges[i].choice, ranges[i - 1].choice);
  }
}

TEST(RouteEnvelope, NothingIsClearlyBelowTheChoice) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const double spread = (seed % 3) * 0.05;
    std::vector<Candidate> candidates;
    for (size_t i = 0, n = 1 + random() % 6; i < n; ++i)
      candidates.push_back(random_candidate(random, spread));
    candidates.front().from = 1;  // as in a router: some candidate serves every size
    const auto ranges = lower_envelope(candidates, all(candidates));
    expect_no_gaps(ranges);
    EXPECT_LE(ranges.size(), kMaxRanges);
    if (ranges.size() >= kMaxRanges) continue;  // then the limit may have cost more than the spread
    for (uint64_t bytes : probes(candidates, ranges)) {
      const double cost = candidates[range_of(ranges, bytes).choice].at(bytes);
      const double s = std::max(spread, kLeastSpread);
      EXPECT_FALSE(clearly_below(least_cost(candidates, bytes), s, cost * (1 - 1e-9), s))
          << "seed " << seed << " at " << bytes;
    }
  }
}

TEST(RouteEnvelope, CrossingIsFoundToTheByte) {
  const std::vector<Candidate> candidates = {straight("low latency", 1, 0.01),
                                             straight("high bandwidth", 11, 0.001)};
  const auto ranges = lower_envelope(candidates, all(candidates));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].choice, 0u);
  EXPECT_NEAR(static_cast<double>(ranges[1].from), 10 / 0.009, 1);
  EXPECT_LE(candidates[1].at(ranges[1].from), candidates[0].at(ranges[1].from));
  EXPECT_GE(candidates[1].at(ranges[0].to - 1), candidates[0].at(ranges[0].to - 1) * (1 - 1e-12));
}

TEST(RouteEnvelope, TiesGoToTheFirst) {
  const std::vector<Candidate> candidates = {straight("a", 1, 0.01), straight("b", 1, 0.01),
                                             straight("c", 2, 0.01)};
  for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2}, {1, 0, 2}, {2, 1, 0}}) {
    const auto ranges = lower_envelope(candidates, order);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].choice, order[0] == 2 ? 1u : order[0]);
  }
}

TEST(RouteEnvelope, PathsOfEqualCostDoNotTakeTurns) {
  // Two paths that differ by 3 % to and fro at every octave.
  const auto wobbly = [](double spread, int phase) {
    std::vector<Point> points;
    for (int i = 0; i < 9; ++i) {
      const double factor = (i + phase) % 2 ? 1.0 : 1.03;
      const uint64_t bytes = uint64_t{1} << i;
      points.push_back({bytes, factor * (10 + static_cast<double>(bytes)), spread});
    }
    return Candidate{.name = "wobbly", .line = CostLine(points)};
  };
  const std::vector<Candidate> quiet = {wobbly(0, 0), wobbly(0, 1)};
  EXPECT_GE(lower_envelope(quiet, all(quiet)).size(), 8u);
  const std::vector<Candidate> noisy = {wobbly(0.05, 0), wobbly(0.05, 1)};
  const auto ranges = lower_envelope(noisy, all(noisy));
  EXPECT_EQ(ranges.size(), 1u);
  EXPECT_TRUE(ranges[0].within_spread);
}

TEST(RouteEnvelope, TheSpreadOfASizeCountsAtThatSizeOnly) {
  // One size that was measured badly on both paths hides no clear gain elsewhere, and makes no flip itself.
  const auto path = [](double at_64, double at_4096) {
    return CostLine({{8, 1, 0.01}, {64, at_64, 0.2}, {512, 2, 0.01}, {4096, at_4096, 0.01}});
  };
  const std::vector<Candidate> candidates = {{.name = "a", .line = path(1.0, 10)},
                                             {.name = "b", .line = path(0.8, 9)}};
  const auto ranges = lower_envelope(candidates, all(candidates));
  EXPECT_EQ(range_of(ranges, 4096).choice, 1u);
  EXPECT_LE(ranges.size(), 2u);
}

TEST(RouteEnvelope, AGainAboveTheSpreadIsTaken) {
  const std::vector<Candidate> candidates = {straight("a", 1, 0.0100, 0.02), straight("b", 2, 0.0090, 0.02)};
  const auto ranges = lower_envelope(candidates, all(candidates));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[1].choice, 1u);
}

TEST(RouteEnvelope, UnmeasuredOnlyWhereNothingElseIs) {
  std::vector<Candidate> candidates = {{.name = "unmeasured", .line = {}}, straight("measured", 5, 1)};
  EXPECT_EQ(lower_envelope(candidates, all(candidates)).front().choice, 1u);
  EXPECT_EQ(lower_envelope(candidates, all(candidates)).size(), 1u);
  candidates[1].line = CostLine();
  EXPECT_EQ(lower_envelope(candidates, all(candidates)).front().choice, 0u);
}

TEST(RouteEnvelope, ASplitCountsOnlyFromWhereItWasMeasured) {
  std::vector<Candidate> candidates = {straight("a", 5, 1), straight("split", 0.1, 0.1)};
  candidates[1].from = 1 << 20;
  const auto ranges = lower_envelope(candidates, all(candidates));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[1].from, 1u << 20);
}

TEST(RouteEnvelope, StaysWithinTheSizesAsked) {
  const std::vector<Candidate> candidates = {straight("a", 1, 0.01), straight("b", 11, 0.001)};
  for (SizeRange sizes :
       {SizeRange{1, 2}, SizeRange{100, 5000}, SizeRange{5000, kEnd}, SizeRange{kEnd - 1, kEnd}})
    expect_no_gaps(lower_envelope(candidates, all(candidates), sizes), sizes);
}

TEST(RouteEnvelope, RefusesNothingToChooseFrom) {
  const std::vector<Candidate> candidates = {straight("a", 1, 1)};
  EXPECT_THROW(lower_envelope(candidates, {}), Error);
  EXPECT_THROW(lower_envelope(candidates, all(candidates), {8, 8}), Error);
}

TEST(RouteEnvelope, RunnerUp) {
  const std::vector<Candidate> candidates = {
      straight("a", 1, 1), straight("b", 3, 1), straight("c", 2, 1), {.name = "unmeasured", .line = {}}};
  EXPECT_EQ(runner_up(candidates, all(candidates), 0, 8), 2u);
  EXPECT_EQ(runner_up(candidates, all(candidates), 2, 8), 0u);
  const std::vector<size_t> two = {0, 3};
  EXPECT_EQ(runner_up(candidates, two, 0, 8), 0u);
}

}  // namespace
}  // namespace pw::route
