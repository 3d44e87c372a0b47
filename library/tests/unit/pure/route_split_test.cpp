// Splitting: pieces sum exactly whatever the size, shares follow what was measured.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/status.h"
#include "route/split.h"

namespace pw::route {
namespace {

SplitCandidate lane(const char* path, double fixed, double gigabytes_per_second) {
  std::vector<Point> points;
  for (uint64_t bytes = 1024; bytes <= (uint64_t{1} << 30); bytes *= 4)
    points.push_back({bytes, fixed + static_cast<double>(bytes) / (gigabytes_per_second * 1e3), 0});
  return {path, CostLine(points)};
}

uint32_t sum(const Split& split) {
  uint32_t total = 0;
  for (const SplitPart& part : split.parts) total += part.share;
  return total;
}

TEST(RouteSplit, PiecesSumExactlyAndTouch) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<uint16_t> shares(1 + random() % kMaxParts, 1);
    for (uint32_t remaining = kShares - static_cast<uint32_t>(shares.size()); remaining > 0; --remaining)
      ++shares[random() % shares.size()];
    const uint64_t bytes = random() >> (1 + random() % 63);
    const uint64_t align = random() % 3 ? uint64_t{1} << random() % 20 : 1 + random() % 5000;
    const uint64_t minimum = random() >> (20 + random() % 44);
    const SplitPieces pieces = divide(shares, minimum, align, bytes);
    ASSERT_GE(pieces.count, 1u);
    uint64_t offset = 0;
    for (const SplitPiece& piece : pieces) {
      ASSERT_EQ(piece.offset, offset);
      ASSERT_EQ(piece.offset % align, 0u);
      ASSERT_LT(piece.part, shares.size());
      if (pieces.count > 1) {
        ASSERT_GT(piece.bytes, 0u);
        ASSERT_GE(piece.bytes + align, minimum);
      }
      offset += piece.bytes;
    }
    ASSERT_EQ(offset, bytes);
  }
}

TEST(RouteSplit, PiecesFollowTheShares) {
  const std::vector<uint16_t> shares = {230, 26};
  const SplitPieces pieces = divide(shares, 65536, 4096, 64 << 20);
  ASSERT_EQ(pieces.count, 2u);
  EXPECT_NEAR(static_cast<double>(pieces.piece[1].bytes) / (64 << 20), 26.0 / 256, 0.001);
  EXPECT_EQ(divide(shares, 65536, 4096, 300000).count, 1u);  // a tenth is less than the minimum part
  EXPECT_EQ(divide(shares, 65536, 4096, 300000).piece[0].part, 0u);
  EXPECT_EQ(divide(shares, 1, 4096, 0).count, 1u);
}

TEST(RouteSplit, ProposesByBandwidth) {
  const std::vector<SplitCandidate> lanes = {lane("peer/copy", 5, 390), lane("staged", 30, 43)};
  const auto split = propose(lanes, 256 << 20);
  ASSERT_TRUE(split);
  EXPECT_EQ(name_of(*split), "peer/copy+staged");
  EXPECT_EQ(describe(*split), "peer/copy 91 % + staged 9 %");
  EXPECT_EQ(sum(*split), kShares);
  // The fixed cost counts: at 64 KiB the staged path would not even have begun.
  EXPECT_FALSE(propose(lanes, 65536));
}

TEST(RouteSplit, ProposesSeveralRailsAndDropsTheHopeless) {
  std::vector<SplitCandidate> lanes = {
      lane("ucx/rail0", 3, 25), lane("slow", 3, 0.01), lane("ucx/rail1", 3, 25), {"unmeasured", {}}};
  const auto split = propose(lanes, 64 << 20);
  ASSERT_TRUE(split);
  EXPECT_EQ(name_of(*split), "ucx/rail0+ucx/rail1");
  EXPECT_EQ(split->parts[0].share, 128);
  for (size_t i = 0; i < 12; ++i) lanes.push_back(lane(("rail" + std::to_string(i)).c_str(), 3, 10));
  EXPECT_EQ(propose(lanes, 1 << 30)->parts.size(), kMaxParts);
  EXPECT_EQ(sum(*propose(lanes, 1 << 30)), kShares);
  EXPECT_FALSE(propose(std::vector<SplitCandidate>{lanes[0]}, 64 << 20));
  EXPECT_FALSE(propose({}, 64 << 20));
}

TEST(RouteSplit, KeepsOnlyWhatIsMeasuredBetter) {
  const std::vector<SplitCandidate> lanes = {lane("peer/copy", 5, 390), lane("staged", 30, 43)};
  const auto trial = [](uint16_t share, double gigabytes_per_second) {
    Trial t{.split = {.parts = {{"peer/copy", static_cast<uint16_t>(kShares - share)}, {"staged", share}}},
            .points = {}};
    for (uint64_t bytes = 64 << 20; bytes <= (uint64_t{1} << 30); bytes *= 2)
      t.points.push_back({bytes, 35 + static_cast<double>(bytes) / (gigabytes_per_second * 1e3), 0.002});
    return t;
  };
  const std::vector<Trial> better = {trial(10, 405), trial(26, 432), trial(40, 420)};
  EXPECT_EQ(worth_keeping(better, lanes), std::vector<size_t>{1});
  const std::vector<Trial> worse = {trial(26, 300), trial(40, 389)};  // they share a bottleneck
  EXPECT_TRUE(worth_keeping(worse, lanes).empty());
}

}  // namespace
}  // namespace pw::route
