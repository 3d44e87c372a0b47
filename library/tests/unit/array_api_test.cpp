// pw_grid_block and pw_halo_create at the border: what one rank is refused, with the numbers, and what it
// gets.
#include <gtest/gtest.h>

#include <string>

#include "peerway/peerway.h"

namespace {

// 6 x 4 doubles, periodic, with a shadow of one layer: 8 x 6 in memory, 384 bytes.
constexpr uint64_t kBytes = 8 * 6 * 8;

class HaloApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pw_team_create(0, 1, nullptr, nullptr, &team_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_context_create(team_, &context_), PW_OK) << pw_error_message();
    ASSERT_EQ(pw_region_allocate(context_, {PW_HOST, 0}, kBytes + 8, &region_), PW_OK) << pw_error_message();
    array_.region = region_;
    array_.offset = 8;
    array_.element_bytes = 8;
    array_.dims = 2;
    array_.dim[0] = {6, 0, 1, {1, 1}, {1, 1}, 0};
    array_.dim[1] = {4, -1, 1, {1, 1}, {1, 1}, 0};
  }
  void TearDown() override {
    pw_plan_free(plan_);
    pw_region_free(region_);
    pw_context_free(context_);
    pw_team_free(team_);
  }
  pw_status create(uint32_t count = 1, pw_halo_parts parts = PW_HALO_FACES) {
    return pw_halo_create(context_, &array_, count, &grid_, parts, &plan_);
  }
  double& at(int row, int column) {
    return static_cast<double*>(pw_region_address(region_))[1 + row * 6 + column];
  }
  static void expect_message(const char* part) {
    EXPECT_NE(std::string(pw_error_message()).find(part), std::string::npos) << pw_error_message();
  }
  pw_team* team_ = nullptr;
  pw_context* context_ = nullptr;
  pw_region* region_ = nullptr;
  pw_plan* plan_ = nullptr;
  pw_grid grid_{.dims = 1, .extent = {1}};
  pw_array array_{};
};

TEST_F(HaloApi, OneRankCopiesFromItself) {
  for (int row = 1; row <= 6; ++row)
    for (int column = 1; column <= 4; ++column) at(row, column) = 10 * row + column;
  ASSERT_EQ(create(1, PW_HALO_CORNERS), PW_OK) << pw_error_message();
  ASSERT_EQ(pw_plan_start(plan_, nullptr), PW_OK) << pw_error_message();
  ASSERT_EQ(pw_plan_finish(plan_, PW_FOREVER), PW_OK) << pw_error_message();
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 6; ++column)
      EXPECT_EQ(at(row, column), 10 * ((row + 5) % 6 + 1) + (column + 3) % 4 + 1) << row << " " << column;
}

TEST_F(HaloApi, ARegionThatIsTooSmallIsRefused) {
  array_.offset = 16;
  EXPECT_EQ(create(), PW_OUT_OF_RANGE);
  expect_message("array 0 with its shadow needs 384 bytes from offset 16 on, but the region has 392 bytes");
  array_.offset = 8;
  array_.dim[0].stride = 56;
  array_.dim[1].stride = 8;
  EXPECT_EQ(create(), PW_OUT_OF_RANGE);
  expect_message("needs 440 bytes");
}

TEST_F(HaloApi, AnOffsetBeyondTheRegionIsRefused) {
  array_.offset = UINT64_MAX - 8;
  EXPECT_EQ(create(), PW_OUT_OF_RANGE);
  expect_message("from offset 18446744073709551607 on");
}

TEST_F(HaloApi, APartNeedsARegion) {
  array_.region = nullptr;
  EXPECT_EQ(create(), PW_INVALID_ARGUMENT);
  expect_message("array 0 has no region, but this rank's part with its shadow needs 384 bytes");
}

TEST_F(HaloApi, NullPointersAreTold) {
  EXPECT_EQ(pw_halo_create(nullptr, &array_, 1, &grid_, PW_HALO_FACES, &plan_), PW_INVALID_ARGUMENT);
  EXPECT_EQ(pw_halo_create(context_, &array_, 1, &grid_, PW_HALO_FACES, nullptr), PW_INVALID_ARGUMENT);
  EXPECT_EQ(pw_halo_create(context_, &array_, 1, nullptr, PW_HALO_FACES, &plan_), PW_INVALID_ARGUMENT);
  expect_message("pw_halo_create");
  EXPECT_EQ(pw_halo_create(context_, nullptr, 1, &grid_, PW_HALO_FACES, &plan_), PW_INVALID_ARGUMENT);
  expect_message("pw_halo_create");
}

TEST_F(HaloApi, NoArraysAreRefused) {
  EXPECT_EQ(create(0), PW_INVALID_ARGUMENT);
  expect_message("0 arrays");
}

TEST_F(HaloApi, AGridThatIsNotTheTeamIsRefused) {
  grid_ = {.dims = 2, .extent = {2, 3}};
  EXPECT_EQ(create(), PW_INVALID_ARGUMENT);
  expect_message("2x3 has 6 places, but the team has 1 ranks");
}

TEST_F(HaloApi, EightDimensionsAreRefused) {
  array_.dims = 8;
  EXPECT_EQ(create(), PW_INVALID_ARGUMENT);
  expect_message("8 dimensions; 1 to 7");
}

TEST(GridBlock, GivesTheBlockOrSaysWhyNot) {
  uint64_t first = 0, count = 0;
  EXPECT_EQ(pw_grid_block(10, 4, 3, &first, &count), PW_OK);
  EXPECT_EQ(first, 9U);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(pw_grid_block(10, 4, 4, &first, &count), PW_OUT_OF_RANGE);
  EXPECT_NE(std::string(pw_error_message()).find("part 4 of 4 parts"), std::string::npos);
  EXPECT_EQ(pw_grid_block(10, 4, 0, nullptr, &count), PW_INVALID_ARGUMENT);
}

}  // namespace
