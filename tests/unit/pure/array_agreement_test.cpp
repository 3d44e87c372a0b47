// What ranks tell each other before they make a halo: where they differ, every rank refuses, with the
// numbers.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "array/agreement.h"

namespace pw::array {
namespace {

Opening opening() {
  Opening one;
  one.arrays = 2;
  one.grid = {2, {2, 2}};
  return one;
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

TEST(HaloAgreement, EqualRanksAgree) { EXPECT_NO_THROW(check_openings(std::vector<Opening>(4, opening()))); }

struct OpeningsThatDiffer {
  const char* name;
  std::function<void(Opening&)> spoil;
  const char* says;
};

class Openings : public ::testing::TestWithParam<OpeningsThatDiffer> {};

TEST_P(Openings, AreCompared) {
  std::vector<Opening> all(4, opening());
  GetParam().spoil(all[3]);
  const std::string said = refusal([&] { check_openings(all); });
  EXPECT_NE(said.find(GetParam().says), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Openings,
    ::testing::Values(OpeningsThatDiffer{"grid", [](Opening& one) { one.grid = {1, {4}}; },
                                         "the grid is 2x2 on rank 0, but 4 on rank 3"},
                      OpeningsThatDiffer{"arrays", [](Opening& one) { one.arrays = 1; },
                                         "the number of arrays is 2 on rank 0, but 1 on rank 3"},
                      OpeningsThatDiffer{"corners", [](Opening& one) { one.corners = 1; },
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
  std::vector<pw_array> all(6, array_of_rank());  // 2 on each of 3 ranks
  EXPECT_NO_THROW(check_arrays(all, 2));
  GetParam().spoil(all[5]);
  const std::string said = refusal([&] { check_arrays(all, 2); });
  EXPECT_NE(said.find(GetParam().says), std::string::npos) << said;
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
  std::vector<pw_array> all(2, array_of_rank());
  all[1].offset = 64;
  all[1].dim[0].stride = 72;
  all[1].dim[1].stride = 8;
  EXPECT_NO_THROW(check_arrays(all, 1));
}

}  // namespace
}  // namespace pw::array
