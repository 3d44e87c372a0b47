// Cost lines: what was measured at measured sizes, straight between them, never free beyond them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/status.h"
#include "route/cost_line.h"

namespace pw::route {
namespace {

TEST(RouteCostLine, AMeasuredSizeCostsWhatWasMeasured) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> cost(0, 3);  // nonsense measurements too
    std::vector<Point> points;
    for (uint64_t bytes = 1 + random() % 5; points.size() < 1 + random() % 60; bytes += 1 + random() % 1000)
      points.push_back({bytes, cost(random), 0});
    const CostLine line(points);
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(line.at(points[i].bytes) / points[i].microseconds, 1, 1e-6);
      if (i == 0) continue;
      const auto [low, high] = std::minmax(points[i - 1].microseconds, points[i].microseconds);
      const double between = line.at((points[i - 1].bytes + points[i].bytes) / 2);
      EXPECT_TRUE(between >= low * (1 - 1e-6) && between <= high * (1 + 1e-6));
    }
    for (uint64_t bytes = 1; bytes < 100000; bytes = bytes * 3 / 2 + 1) EXPECT_GT(line.at(bytes), 0);
  }
}

TEST(RouteCostLine, BeyondTheMeasuredSizes) {
  const CostLine line({{1024, 2, 0}, {2048, 3, 0}});
  EXPECT_DOUBLE_EQ(line.at(1), 2);
  EXPECT_DOUBLE_EQ(line.at(1536), 2.5);
  EXPECT_DOUBLE_EQ(line.at(4096), 5);  // by the last slope
  // Where there is no slope, or one that falls, a path must not look free at sizes it never carried.
  EXPECT_DOUBLE_EQ(CostLine({{8, 2, 0}, {16, 2, 0}}).at(1600), 200);
  EXPECT_DOUBLE_EQ(CostLine({{8, 3, 0}, {16, 2, 0}}).at(1600), 200);
  const CostLine single({{100, 5, 0}});
  EXPECT_DOUBLE_EQ(single.at(50), 5);
  EXPECT_DOUBLE_EQ(single.at(200), 10);
  EXPECT_TRUE(std::isinf(CostLine().at(8)));
}

TEST(RouteCostLine, TheSpreadIsThatOfTheSizesAround) {
  const CostLine line({{8, 1, 0.02}, {16, 1, 0.2}, {32, 1, 0.04}, {64, 1, 3}});
  const std::pair<uint64_t, double> table[] = {{1, 0.02},         {8, 0.02},         {9, 0.2},
                                               {16, 0.2},         {17, 0.2},         {32, 0.04},
                                               {64, kMostSpread}, {65, kMostSpread}, {1000, kMostSpread}};
  for (const auto& [bytes, spread] : table) EXPECT_DOUBLE_EQ(line.spread(bytes), spread) << bytes;
  EXPECT_DOUBLE_EQ(CostLine({{8, 1, 0}}).spread(8), kLeastSpread);
}

TEST(RouteCostLine, ClearlyBelowMeansThatTheRangesDoNotTouch) {
  EXPECT_TRUE(clearly_below(1.00, 0.01, 1.05, 0.01));
  EXPECT_FALSE(clearly_below(1.00, 0.03, 1.05, 0.03));
  EXPECT_FALSE(clearly_below(1.05, 0, 1.00, 0));
}

TEST(RouteCostLine, RefusesWhatIsNoMeasurement) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<Point> bad[] = {
      {{0, 1, 0}},   {{8, 0, 0}},    {{8, -1, 0}},           {{8, nan, 0}},         {{8, inf, 0}},
      {{8, 1, nan}}, {{8, 1, -0.1}}, {{8, 1, 0}, {8, 2, 0}}, {{9, 1, 0}, {8, 2, 0}}};
  for (const auto& points : bad) EXPECT_THROW(CostLine{points}, Error);
}

}  // namespace
}  // namespace pw::route
