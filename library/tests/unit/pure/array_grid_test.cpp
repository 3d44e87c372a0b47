// The process grid and the block distribution.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "array/grid.h"
#include "base/status.h"

namespace pw::array {
namespace {

struct Blocks {
  uint64_t extent;
  std::vector<uint64_t> counts;
};

class BlockDistribution : public ::testing::TestWithParam<Blocks> {};

TEST_P(BlockDistribution, GivesCeilToAllButTheLast) {
  const auto& [extent, counts] = GetParam();
  const auto parts = static_cast<uint32_t>(counts.size());
  uint64_t first = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < parts; ++i) {
    const Interval part = block_of(extent, parts, i);
    EXPECT_EQ(part.count, counts[i]) << i;
    EXPECT_EQ(part.first, first) << i;
    first += part.count;
    used += part.count > 0 ? 1 : 0;
  }
  EXPECT_EQ(first, extent);
  EXPECT_EQ(used_parts(extent, parts), used);
}

INSTANTIATE_TEST_SUITE_P(Table, BlockDistribution,
                         ::testing::Values(Blocks{8, {4, 4}}, Blocks{7, {4, 3}}, Blocks{5, {2, 2, 1, 0}},
                                           Blocks{10, {3, 3, 3, 1}}, Blocks{9, {3, 3, 3, 0}}, Blocks{1, {1}},
                                           Blocks{0, {0, 0}}, Blocks{2, {1, 1, 0}},
                                           Blocks{UINT64_MAX, {UINT64_MAX / 2 + 1, UINT64_MAX / 2}},
                                           Blocks{UINT64_MAX, {UINT64_MAX}}));

TEST(BlockDistribution, RefusesAPartThatIsNone) {
  EXPECT_THROW(static_cast<void>(block_of(8, 2, 2)), Error);
  EXPECT_THROW(static_cast<void>(block_of(8, 0, 0)), Error);
}

TEST(Neighbour, WrapsRoundTheUsedPartsOnly) {
  EXPECT_EQ(neighbour(3, 0, below, false), std::nullopt);
  EXPECT_EQ(neighbour(3, 0, below, true), 2U);
  EXPECT_EQ(neighbour(3, 1, below, false), 0U);
  EXPECT_EQ(neighbour(3, 1, above, false), 2U);
  EXPECT_EQ(neighbour(3, 2, above, false), std::nullopt);
  EXPECT_EQ(neighbour(3, 2, above, true), 0U);
  EXPECT_EQ(neighbour(1, 0, above, true), 0U);
  EXPECT_EQ(neighbour(1, 0, below, true), 0U);
}

TEST(ProcessGrid, RunsTheLastDimensionFastest) {
  const Grid grid({sizeof(pw_grid), 3, {2, 3, 4, 0}}, 24);
  EXPECT_EQ(grid.coordinates(0), (Coordinates{0, 0, 0, 0}));
  EXPECT_EQ(grid.coordinates(1), (Coordinates{0, 0, 1, 0}));
  EXPECT_EQ(grid.coordinates(23), (Coordinates{1, 2, 3, 0}));
  for (int rank = 0; rank < 24; ++rank) EXPECT_EQ(grid.rank(grid.coordinates(rank)), rank);
}

struct BadGrid {
  const char* name;
  pw_grid grid;
  int team;
  const char* says;
};

class RefusedGrids : public ::testing::TestWithParam<BadGrid> {};

TEST_P(RefusedGrids, SayWhy) {
  const BadGrid& c = GetParam();
  try {
    const Grid grid(c.grid, c.team);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedGrids,
    ::testing::Values(
        BadGrid{"no_dimension", {sizeof(pw_grid), 0, {}}, 1, "0 dimensions; 1 to 4"},
        BadGrid{"five_dimensions", {sizeof(pw_grid), 5, {1, 1, 1, 1}}, 1, "5 dimensions; 1 to 4"},
        BadGrid{"no_place", {sizeof(pw_grid), 2, {2, 0}}, 2, "process grid 2x0: dimension 1 is 0"},
        BadGrid{"too_few", {sizeof(pw_grid), 2, {2, 2}}, 5, "2x2 has 4 places, but the team has 5 ranks"},
        BadGrid{"too_many", {sizeof(pw_grid), 1, {3}}, 2, "3 has 3 places, but the team has 2 ranks"},
        BadGrid{"overflow",
                {sizeof(pw_grid), 4, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
                1,
                "over 2147483647 places"}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace pw::array
