// Cost lines from noisy synthetic measurements: near the truth, few pieces, never negative, never free.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "base/status.h"
#include "route/fit.h"

namespace pw::route {
namespace {

using Truth = std::function<double(double)>;

std::vector<Point> measure(const Truth& truth, double noise, unsigned seed,
                           uint64_t most = uint64_t{1} << 28) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<Point> points;
  for (uint64_t bytes = 1; bytes <= most; bytes *= 2)
    points.push_back({bytes, truth(static_cast<double>(bytes)) * (1 + error(random)), noise});
  return points;
}

struct Shape {
  const char* name;
  Truth truth;
  size_t most_segments;
};

const Shape kShapes[] = {
    {"latency and bandwidth", [](double x) { return 2 + x / 1000; }, 3},
    {"a step where the protocol changes", [](double x) { return x <= 8192 ? 0.3 + x / 9000 : 4 + x / 40000; },
     6},
    {"bandwidth falls out of the cache",
     [](double x) { return 0.1 + x / 20000 + std::max(0.0, x - (1 << 20)) / 12000; }, 5},
    {"flat", [](double) { return 7.0; }, 1},
};

TEST(RouteFit, NoisyLinesStayNearTheTruth) {
  for (const Shape& shape : kShapes)
    for (double noise : {0.0, 0.01, 0.05})
      for (unsigned seed = 0; seed < 20; ++seed) {
        const CostLine line = fit(measure(shape.truth, noise, seed));
        double squares = 0;
        int count = 0;
        for (double x = 1; x < (1 << 28); x *= 2, ++count) {
          const double off = line.at(static_cast<uint64_t>(x)) / shape.truth(x) - 1;
          squares += off * off;
          EXPECT_LT(std::abs(off), 0.02 + 4 * noise) << shape.name << " at " << x << " noise " << noise;
        }
        EXPECT_LT(std::sqrt(squares / count), 0.02 + noise) << shape.name << " noise " << noise;
        const size_t most = noise < 0.02 ? shape.most_segments : kMaxSegments;
        EXPECT_LE(line.segments.size(), most) << shape.name << " noise " << noise;
      }
}

TEST(RouteFit, PiecesTouchAndNeverFall) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> cost(0, 3);  // nonsense measurements
    std::vector<Point> points;
    for (uint64_t bytes = 1 + random() % 5; points.size() < 1 + random() % 60; bytes += 1 + random() % 1000)
      points.push_back({bytes, cost(random), 0});
    const CostLine line = fit(points);
    ASSERT_FALSE(line.segments.empty());
    EXPECT_LE(line.segments.size(), kMaxSegments);
    EXPECT_EQ(line.segments.back().to, points.back().bytes);
    for (size_t i = 0; i < line.segments.size(); ++i) {
      const Segment& s = line.segments[i];
      EXPECT_GT(s.us_from, 0);
      EXPECT_LE(s.us_from, s.us_to);
      EXPECT_EQ(s.from, i == 0 ? points.front().bytes : line.segments[i - 1].to);
    }
    for (uint64_t bytes = 1; bytes < 100000; bytes = bytes * 3 / 2 + 1) EXPECT_GT(line.at(bytes), 0);
  }
}

TEST(RouteFit, OneWildPointDoesNotBendTheLine) {
  std::vector<Point> points = measure([](double x) { return 1 + x / 1000; }, 0.01, 1);
  points.push_back({1024, 2.05, 0.01});
  points.push_back({1024, 900.0, 0.01});  // a hiccup in one of three runs of this size: the median drops it
  EXPECT_NEAR(fit(points).at(1024) / 2.024, 1, 0.05);
}

TEST(RouteFit, BeyondTheMeasuredSizes) {
  const CostLine line = fit(std::vector<Point>{{1024, 2, 0}, {2048, 3, 0}});
  EXPECT_DOUBLE_EQ(line.at(1), 2);
  EXPECT_DOUBLE_EQ(line.at(1536), 2.5);
  EXPECT_DOUBLE_EQ(line.at(4096), 5);  // by the last slope
  // Where there is no slope a path must not look free at sizes it never carried.
  const CostLine flat = fit(std::vector<Point>{{8, 2, 0}, {16, 2, 0}});
  EXPECT_DOUBLE_EQ(flat.at(1600), 200);
  const CostLine single = fit(std::vector<Point>{{100, 5, 0}});
  EXPECT_DOUBLE_EQ(single.at(50), 5);
  EXPECT_DOUBLE_EQ(single.at(200), 10);
  EXPECT_TRUE(std::isinf(CostLine{}.at(8)));
}

TEST(RouteFit, NoiseIsTheSpreadOrTheResidual) {
  EXPECT_NEAR(fit(measure([](double x) { return 1 + x / 100; }, 0.08, 3)).noise, 0.08, 0.03);
  EXPECT_DOUBLE_EQ(fit(std::vector<Point>{{1, 1, 0}, {2, 1, 0}}).noise, 0.01);
  EXPECT_DOUBLE_EQ(fit(std::vector<Point>{{1, 1, 3}, {2, 1, 3}}).noise, 0.25);
}

TEST(RouteFit, RefusesWhatIsNoMeasurement) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<Point> bad[] = {{},
                                    {{0, 1, 0}},
                                    {{8, 0, 0}},
                                    {{8, -1, 0}},
                                    {{8, nan, 0}},
                                    {{8, inf, 0}},
                                    {{8, 1, nan}},
                                    {{8, 1, -0.1}}};
  for (const auto& points : bad) EXPECT_THROW(fit(points), Error);
}

}  // namespace
}  // namespace pw::route
