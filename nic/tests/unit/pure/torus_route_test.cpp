// Routes through a torus: exhaustively on small ones, and on the largest.
#include <gtest/gtest.h>

#include <deque>

#include "rounds.h"
#include "torus/route.h"

namespace pw::torus {
namespace {

std::vector<uint32_t> fewest_hops(const Grid& grid, uint32_t from) {
  std::vector<uint32_t> hops(grid.nodes(), UINT32_MAX);
  hops[from] = 0;
  for (std::deque<uint32_t> next{from}; !next.empty(); next.pop_front())
    for (uint32_t direction = 0; direction < 2 * grid.extents().size(); ++direction) {
      const uint32_t other = grid.behind({next.front(), direction});
      if (hops[other] != UINT32_MAX) continue;
      hops[other] = hops[next.front()] + 1;
      next.push_back(other);
    }
  return hops;
}

void expect_leads(const Grid& grid, uint32_t from, uint32_t to, const Route& route) {
  ASSERT_TRUE(route.exists) << from << " to " << to;
  uint32_t at = from;
  for (const Link& link : route.links) {
    ASSERT_EQ(link.node, at);
    at = grid.behind(link);
    ASSERT_FALSE(grid.dead(at));
  }
  ASSERT_EQ(at, to);
}

void expect_shortest_in_order(const Grid& grid) {
  // All of the million pairs would take a minute.
  const uint32_t stride = grid.nodes() <= 256 ? 1 : kSanitized ? 205 : 41;
  for (uint32_t from = 0; from < grid.nodes(); from += stride) {
    const auto hops = fewest_hops(grid, from);
    for (uint32_t to = 0; to < grid.nodes(); ++to) {
      const Route route = grid.route(from, to);
      expect_leads(grid, from, to, route);
      ASSERT_EQ(route.links.size(), hops[to]) << from << " to " << to;
      for (size_t i = 1; i < route.links.size(); ++i)
        ASSERT_LE(route.links[i - 1].direction / 2, route.links[i].direction / 2);
    }
  }
}

TEST(TorusRoute, IsShortestAndInTheOrderOfTheDimensions) {
  for (const auto& extents : std::vector<std::vector<uint32_t>>{
           {1}, {2}, {5}, {8}, {1, 3}, {2, 2}, {4, 3}, {3, 4, 5}, {2, 3, 2, 4}, {1024}, {4, 4, 8, 8}})
    expect_shortest_in_order(Grid(extents));
}

TEST(TorusRoute, TurnsUpwardsHalfwayAround) {
  const Route route = Grid({4}).route(1, 3);
  EXPECT_EQ(route.links, (std::vector<Link>{{1, 0}, {2, 0}}));
}

TEST(TorusRoute, GoesAroundACutLink) {
  for (uint32_t a = 0; a < 12; ++a) {
    Grid grid({4, 3});
    const uint32_t b = grid.behind({a, 0});
    grid.cut(a, b);
    const Route route = grid.route(a, b);
    expect_leads(grid, a, b, route);
    EXPECT_EQ(route.links.size(), 3u);
    EXPECT_EQ(grid.route(b, a).links.size(), 3u);
  }
}

TEST(TorusRoute, GoesAroundADeadNode) {
  Grid grid({5});
  grid.kill(1);
  const Route route = grid.route(0, 2);
  expect_leads(grid, 0, 2, route);
  EXPECT_EQ(route.links.size(), 3u);
  EXPECT_FALSE(grid.route(0, 1).exists);
  EXPECT_FALSE(grid.route(1, 0).exists);
}

TEST(TorusRoute, FindsNoneWhereThereIsNone) {
  Grid ring({4});
  ring.cut(0, 1);
  ring.cut(2, 3);
  EXPECT_FALSE(ring.route(0, 1).exists);
  EXPECT_TRUE(ring.route(0, 3).exists);
  Grid pair({2});  // two links join the two, and both are cut
  pair.cut(0, 1);
  EXPECT_FALSE(pair.route(0, 1).exists);
}

TEST(TorusRoute, HasCoordinates) {
  EXPECT_EQ(Grid({4, 3}).coordinates(7), (std::array<uint32_t, PW_NIC_DIMENSIONS>{3, 1, 0, 0}));
}

}  // namespace
}  // namespace pw::torus
