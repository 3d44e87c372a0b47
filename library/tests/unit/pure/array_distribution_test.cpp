// Distributed arrays: what is refused, with the numbers, and how a part lies in memory.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "array/distribution.h"
#include "base/status.h"

namespace pw::array {
namespace {

// 10 x 6 doubles, both dimensions distributed, a shadow of 1 all round.
pw_array good_array() {
  pw_array array{};
  array.element_bytes = 8;
  array.dims = 2;
  array.dim[0] = {10, 0, 0, {1, 1}, {1, 1}, 0};
  array.dim[1] = {6, 1, 1, {1, 1}, {1, 1}, 0};
  return array;
}

const pw_grid kGrid{.dims = 2, .extent = {4, 2}};  // parts of 3 3 3 1 and of 3 3

struct Refused {
  const char* name;
  std::function<void(pw_array&)> spoil;
  pw_status status;
  const char* says;
};

class RefusedArrays : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedArrays, SayWhy) {
  const Refused& c = GetParam();
  const Grid grid(kGrid, 8);
  pw_array array = good_array();
  EXPECT_NO_THROW(Distribution(grid, array, 3));
  c.spoil(array);
  try {
    const Distribution distribution(grid, array, 3);
    for (int rank = 0; rank < 8; ++rank)
      static_cast<void>(distribution.strides(given_strides(array), grid.coordinates(rank)));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), c.status) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedArrays,
    ::testing::Values(
        Refused{"no_dimension", [](pw_array& a) { a.dims = 0; }, PW_INVALID_ARGUMENT, "0 dimensions; 1 to 7"},
        Refused{"eight_dimensions", [](pw_array& a) { a.dims = 8; }, PW_INVALID_ARGUMENT,
                "array 3 has 8 dimensions; 1 to 7"},
        Refused{"no_element", [](pw_array& a) { a.element_bytes = 0; }, PW_INVALID_ARGUMENT, "0 bytes"},
        Refused{"grid_dimension_that_is_none", [](pw_array& a) { a.dim[1].grid_dim = 2; }, PW_OUT_OF_RANGE,
                "dimension 1 of array 3 is distributed over dimension 2 of the grid, which has 2"},
        Refused{"negative_grid_dimension", [](pw_array& a) { a.dim[1].grid_dim = -2; }, PW_OUT_OF_RANGE,
                "-2"},
        Refused{"two_on_one", [](pw_array& a) { a.dim[1].grid_dim = 0; }, PW_INVALID_ARGUMENT,
                "dimensions 0 and 1 of array 3 are both distributed over dimension 0"},
        Refused{"more_processes_than_elements", [](pw_array& a) { a.dim[0].extent = 3; }, PW_INVALID_ARGUMENT,
                "has 3 elements, distributed over 4 processes"},
        Refused{"no_elements",
                [](pw_array& a) {
                  a.dim[0].grid_dim = -1;
                  a.dim[0].extent = 0;
                },
                PW_INVALID_ARGUMENT, "has 0 elements"},
        Refused{"periodic_is_a_flag", [](pw_array& a) { a.dim[0].periodic = 2; }, PW_INVALID_ARGUMENT,
                "periodic is 2"},
        Refused{"width_over_the_shadow", [](pw_array& a) { a.dim[1].width[above] = 2; }, PW_INVALID_ARGUMENT,
                "width 2 above in dimension 1 of array 3 is larger than its shadow, 1"},
        Refused{"shadow_over_the_neighbours_block", [](pw_array& a) { a.dim[0].shadow[above] = 2; },
                PW_INVALID_ARGUMENT, "a shadow of 2 layers above in dimension 0 of array 3"},
        Refused{"which_block", [](pw_array& a) { a.dim[0].shadow[above] = 2; }, PW_INVALID_ARGUMENT,
                "part 3 of 4 has 1 of 10 elements"},
        Refused{"shadow_over_the_block_round_the_end",
                [](pw_array& a) {
                  a.dim[0].periodic = 1;
                  a.dim[0].shadow[below] = 2;
                },
                PW_INVALID_ARGUMENT, "a shadow of 2 layers below"},
        Refused{"shadow_over_an_own_block",
                [](pw_array& a) {
                  a.dim[0].grid_dim = -1;
                  a.dim[0].periodic = 1;
                  a.dim[0].shadow[below] = 11;
                },
                PW_INVALID_ARGUMENT, "part 0 of 1 has 10 of 10 elements"},
        Refused{"negative_stride",
                [](pw_array& a) {
                  a.dim[0].stride = 64;
                  a.dim[1].stride = -8;
                },
                PW_INVALID_ARGUMENT, "stride -8 in dimension 1 of array 3; strides must be positive"},
        Refused{"one_stride_missing", [](pw_array& a) { a.dim[0].stride = 64; }, PW_INVALID_ARGUMENT,
                "stride 0 in dimension 1"},
        Refused{"stride_below_the_element",
                [](pw_array& a) {
                  a.dim[0].stride = 64;
                  a.dim[1].stride = 4;
                },
                PW_INVALID_ARGUMENT, "stride 4 in dimension 1 of array 3 is smaller than the 8 bytes"},
        Refused{"rows_that_overlap",
                [](pw_array& a) {
                  a.dim[0].stride = 32;
                  a.dim[1].stride = 8;
                },
                PW_INVALID_ARGUMENT, "stride 32 in dimension 0 of array 3 is smaller than the 40 bytes"},
        Refused{"too_large",
                [](pw_array& a) {
                  a.dim[0].stride = INT64_MAX / 2;
                  a.dim[1].stride = 8;
                },
                PW_OUT_OF_RANGE, "63 bits"},
        Refused{"shadow_that_overflows",
                [](pw_array& a) {
                  a.dim[0].width[below] = 0;
                  a.dim[0].shadow[below] = UINT64_MAX;
                },
                PW_OUT_OF_RANGE, "a shadow of 18446744073709551615 below"}),
    [](const auto& each) { return each.param.name; });

TEST(Distribution, AShadowWithoutANeighbourMayBeOfAnyWidth) {
  const Grid grid(kGrid, 8);
  pw_array array = good_array();
  array.dim[0] = {10, -1, 0, {20, 20}, {20, 20}, 0};  // not periodic: a border of the program's own
  EXPECT_NO_THROW(Distribution(grid, array, 0));
}

TEST(Distribution, AShadowThatIsNotRefreshedMayBeOfAnyWidth) {
  const Grid grid(kGrid, 8);
  pw_array array = good_array();
  array.dim[0].shadow[above] = 9;
  array.dim[0].width[above] = 0;
  EXPECT_NO_THROW(Distribution(grid, array, 0));
}

TEST(Distribution, DenseIsTheLastDimensionFastest) {
  const Grid grid(kGrid, 8);
  const pw_array array = good_array();
  const Distribution distribution(grid, array, 0);
  const Coordinates first = grid.coordinates(0), last = grid.coordinates(7);
  EXPECT_EQ(distribution.strides({}, first), (ArrayStrides{40, 8}));
  EXPECT_EQ(distribution.extent_bytes({40, 8}, first), 5 * 5 * 8U);
  EXPECT_EQ(distribution.extent_bytes({40, 8}, last), 3 * 5 * 8U);
}

TEST(Distribution, AnEmptyPartHasNoMemory) {
  const Grid grid({sizeof(pw_grid), 1, {4}}, 4);
  pw_array array{};
  array.element_bytes = 8;
  array.dims = 1;
  array.dim[0] = {5, 0, 1, {1, 1}, {1, 1}, 0};
  const Distribution distribution(grid, array, 0);
  EXPECT_TRUE(distribution.empty(grid.coordinates(3)));
  EXPECT_EQ(distribution.extent_bytes(distribution.strides({}, {3}), {3}), 0U);
  Coordinates at{2};
  EXPECT_TRUE(distribution.step(at, 0, above));
  EXPECT_EQ(at[0], 0U);  // round the empty part
}

}  // namespace
}  // namespace pw::array
