// The size of a kernel's grid (xacc/runtime/gpu/grid.h).
#include <gtest/gtest.h>

#include "xacc/runtime/gpu/grid.h"

namespace pwx {
namespace {

constexpr int kProcessors = 100;

struct Case {
  const char* name;
  pwx_shape shape;  // iterations, threads, blocks, executor, y_at_once
  bool reduces;
  Grid grid;
};

class GridTest : public testing::TestWithParam<Case> {};

TEST_P(GridTest, IsThatOfTheShape) {
  EXPECT_EQ(grid_of(GetParam().shape, GetParam().reduces, most_joined(kProcessors)), GetParam().grid);
}

INSTANTIATE_TEST_SUITE_P(
    All, GridTest,
    testing::Values(
        Case{"few", {{20, 1, 1}, 0, 0, PWX_BY_THREAD, 0}, false, {{1, 1, 1}, 32}},
        Case{"some", {{1000, 3, 2}, 0, 0, PWX_BY_THREAD, 0}, false, {{4, 3, 2}, 256}},
        Case{"threads", {{1000, 1, 1}, 64, 0, PWX_BY_THREAD, 0}, false, {{16, 1, 1}, 64}},
        Case{"tooManyThreads", {{4096, 1, 1}, 4096, 0, PWX_BY_THREAD, 0}, false, {{4, 1, 1}, 1024}},
        Case{"blocks", {{1000, 3, 2}, 0, 6, PWX_BY_THREAD, 0}, false, {{2, 3, 1}, 256}},
        Case{"byBlock", {{1000, 1, 1}, 0, 0, PWX_BY_BLOCK, 0}, false, {{1000, 1, 1}, 128}},
        Case{"byWarp", {{1001, 1, 1}, 32, 0, PWX_BY_WARP, 0}, false, {{126, 1, 1}, 256}},
        Case{"reducesByWarp", {{1 << 20, 1, 1}, 32, 0, PWX_BY_WARP, 0}, true, {{800, 1, 1}, 256}},
        Case{"asManyAsBegin", {{256L << 13, 1, 1}, 0, 0, PWX_BY_THREAD, 0}, false, {{1 << 13, 1, 1}, 256}},
        Case{"twoIterations",
             {{(256L << 14) + 1, 1, 1}, 0, 0, PWX_BY_THREAD, 0},
             false,
             {{(1 << 13) + 1, 1, 1}, 256}},
        Case{"twoIterationsInDimensions",
             {{256L * 100, 40, 3}, 0, 0, PWX_BY_THREAD, 0},
             false,
             {{50, 40, 3}, 256}},
        Case{"oneBlockOfX", {{256, 20000, 1}, 0, 0, PWX_BY_THREAD, 0}, false, {{1, 20000, 1}, 256}},
        Case{"reduces", {{256L << 14, 1, 1}, 0, 0, PWX_BY_THREAD, 0}, true, {{781, 1, 1}, 256}},
        Case{"reducesInDimensions",
             {{256L * 300, 100, 100}, 0, 0, PWX_BY_THREAD, 0},
             true,
             {{8, 100, 1}, 256}},
        Case{"fourOfYAtOnce", {{256L * 192, 16, 1}, 0, 0, PWX_BY_THREAD, 4}, true, {{192, 4, 1}, 256}},
        Case{"reducesAlike", {{256L * 400, 2, 9}, 0, 0, PWX_BY_THREAD, 0}, true, {{400, 2, 1}, 256}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pwx
