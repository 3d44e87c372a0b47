// The data that ranks exchange before they make a halo: if it differs, every rank refuses, with the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "array/agreement.h"
#include "array/grid.h"
#include "base/status.h"

namespace pw::array {
namespace {

HaloOpening opening() {
  HaloOpening halo;
  halo.arrays = 2;
  halo.grid = {sizeof(pw_grid), 2, {2, 2}};
  return halo;
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

RequestedHalo ask_of(const HaloOpening& halo_opening, std::vector<pw_array> arrays = {}) {
  return {halo_opening, std::move(arrays)};
}

TEST(HaloAgreement, EqualRanksAgree) {
  EXPECT_NO_THROW(check_same(0, ask_of(opening()), 3, ask_of(opening())));
}

struct OpeningsThatDiffer {
  const char* name;
  std::function<void(HaloOpening&)> spoil;
  const char* says;
};

class Openings : public ::testing::TestWithParam<OpeningsThatDiffer> {};

TEST_P(Openings, AreCompared) {
  HaloOpening other = opening();
  GetParam().spoil(other);
  const std::string message = refusal([&] { check_same(0, ask_of(opening()), 3, ask_of(other)); });
  // Whichever of the two compares.
  EXPECT_EQ(message, refusal([&] { check_same(3, ask_of(other), 0, ask_of(opening())); }));
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Openings,
    ::testing::Values(
        OpeningsThatDiffer{"grid",
                           [](HaloOpening& halo_opening) { halo_opening.grid = {sizeof(pw_grid), 1, {4}}; },
                           "the grid is 2x2 on rank 0, but 4 on rank 3"},
        OpeningsThatDiffer{"arrays", [](HaloOpening& halo_opening) { halo_opening.arrays = 1; },
                           "the number of arrays is 2 on rank 0, but 1 on rank 3"},
        OpeningsThatDiffer{"corners", [](HaloOpening& halo_opening) { halo_opening.corners = 1; },
                           "corners is 0 on rank 0, but 1 on rank 3"}),
    [](const auto& each) { return each.param.name; });

pw_array array_of_rank() {
  pw_array array{};
  array.element_bytes = 8;
  array.dims = 2;
  array.dim[0] = {10, 0, 0, {1, 1}, {1, 1}, 0};
  array.dim[1] = {6, -1, 1, {1, 2}, {1, 1}, 0};
  return array;
}

struct ArraysThatDiffer {
  const char* name;
  std::function<void(pw_array&)> spoil;
  const char* says;
};

class Arrays : public ::testing::TestWithParam<ArraysThatDiffer> {};

TEST_P(Arrays, AreCompared) {
  const RequestedHalo ask = ask_of(opening(), {array_of_rank(), array_of_rank()});
  RequestedHalo other = ask;
  EXPECT_NO_THROW(check_same(0, ask, 2, other));
  GetParam().spoil(other.arrays[1]);
  const std::string message = refusal([&] { check_same(0, ask, 2, other); });
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Arrays,
    ::testing::Values(
        ArraysThatDiffer{"element", [](pw_array& a) { a.element_bytes = 4; },
                         "the element size of array 1 in bytes is 8 on rank 0, but 4 on rank 2"},
        ArraysThatDiffer{"dims", [](pw_array& a) { a.dims = 1; },
                         "the number of dimensions of array 1 is 2 on rank 0, but 1 on rank 2"},
        ArraysThatDiffer{"extent", [](pw_array& a) { a.dim[0].extent = 11; },
                         "the extent of dimension 0 of array 1 is 10 on rank 0, but 11 on rank 2"},
        ArraysThatDiffer{
            "grid_dim", [](pw_array& a) { a.dim[1].grid_dim = 1; },
            "dimension 1 of array 1 is distributed over dimension -1 of the grid on rank 0, but over 1"},
        ArraysThatDiffer{"periodic", [](pw_array& a) { a.dim[1].periodic = 0; },
                         "periodic of dimension 1 of array 1 is 1 on rank 0, but 0 on rank 2"},
        ArraysThatDiffer{"shadow", [](pw_array& a) { a.dim[1].shadow[1] = 3; },
                         "the shadow above of dimension 1 of array 1 is 2 on rank 0, but 3 on rank 2"},
        ArraysThatDiffer{"width", [](pw_array& a) { a.dim[0].width[0] = 0; },
                         "the width below of dimension 0 of array 1 is 1 on rank 0, but 0 on rank 2"}),
    [](const auto& each) { return each.param.name; });

TEST(HaloAgreement, StridesOffsetsAndRegionsAreEachRanksOwn) {
  const RequestedHalo ask = ask_of(opening(), {array_of_rank(), array_of_rank()});
  RequestedHalo other = ask;
  other.arrays[1].offset = 64;
  other.arrays[1].dim[0].stride = 72;
  other.arrays[1].dim[1].stride = 8;
  EXPECT_NO_THROW(check_same(0, ask, 1, other));
}

TEST(HaloAgreement, AnAskIsReadAsItWasWritten) {
  const RequestedHalo ask = ask_of(opening(), {array_of_rank(), array_of_rank()});
  EXPECT_NO_THROW(check_same(0, ask, 1, parse_requested_halo(pack(ask))));
  Bytes cut = pack(ask);
  cut.pop_back();
  EXPECT_THROW(parse_requested_halo(cut), Error);
}

std::vector<int> listeners_of(int rank, const pw_grid& shape, std::array<uint64_t, 2> extents,
                              uint32_t periodic, bool corners) {
  const Grid grid(shape, static_cast<int>(shape.extent[0] * shape.extent[1]));
  pw_array array{};
  array.element_bytes = 8;
  array.dims = 2;
  array.dim[0] = {extents[0], 0, periodic, {1, 1}, {1, 1}, 0};
  array.dim[1] = {extents[1], 1, periodic, {1, 1}, {1, 1}, 0};
  const std::vector<Distribution> arrays{Distribution(grid, array, 0)};
  return listeners(arrays, rank, corners);
}

TEST(HaloAgreement, ARankTellsItsNeighboursAndNoOthers) {
  const pw_grid shape{sizeof(pw_grid), 2, {8, 8}};
  EXPECT_EQ(listeners_of(9, shape, {64, 64}, 1, false), (std::vector<int>{1, 8, 10, 17}));
  EXPECT_EQ(listeners_of(9, shape, {64, 64}, 1, true), (std::vector<int>{0, 1, 2, 8, 10, 16, 17, 18}));
  // At an end of what is not periodic the comparison still goes round.
  EXPECT_EQ(listeners_of(0, shape, {64, 64}, 0, false), (std::vector<int>{1, 7, 8, 56}));
}

TEST(HaloAgreement, WhoeverOwnsNothingAndRank0TellEachOther) {
  const pw_grid shape{sizeof(pw_grid), 2, {4, 4}};
  const std::vector<int> of_last = listeners_of(15, shape, {5, 4}, 0, false);
  EXPECT_EQ(of_last.front(), 0);
  const std::vector<int> of_first = listeners_of(0, shape, {5, 4}, 0, false);
  for (const int empty : {12, 13, 14, 15})
    EXPECT_NE(std::ranges::find(of_first, empty), of_first.end()) << empty;
}

}  // namespace
}  // namespace pw::array
