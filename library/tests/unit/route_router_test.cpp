// Decisions as data, with mock paths: what the hot path looks up and what explain tells about it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/status.h"
#include "route/explain.h"
#include "route/router.h"

namespace pw::route {
namespace {

const std::vector<std::string> kPaths = {"peer/packets", "peer/store", "peer/copy", "mapped", "staged"};
const Case kPut{Op::put, ShapeClass::contiguous, {"cuda", "cuda", "nvlink", false}};
const Query kQuery{kPut, {"peer/copy", "peer/store", "staged"}, {{"mapped", "the driver refuses"}}};

CostLine line(double fixed, double gigabytes_per_second, uint64_t from = 8) {
  std::vector<Point> points;
  for (uint64_t bytes = from; bytes <= (uint64_t{1} << 30); bytes *= 2)
    points.push_back({bytes, fixed + static_cast<double>(bytes) / (gigabytes_per_second * 1e3), 0.01});
  return CostLine(points);
}

Table sample(ShapeClass shape = ShapeClass::contiguous) {
  Case where = kPut;
  where.shape = shape;
  Table table{.tool = "peerway 0.1.0",
              .date = "2026-11-21",
              .machine = {{"gpu 0", "H200"}},
              .missing = {},
              .costs = {},
              .splits = {}};
  table.costs = {{where, "peer/copy", line(5, 392)},
                 {where, "peer/store", line(2, 330)},
                 {where, "staged", line(30, 43)}};
  table.splits = {{where, {.parts = {{"peer/copy", 230}, {"staged", 26}}}, line(35, 432, 1 << 26)}};
  table.missing = {{where.pair, "ucx", "no CUDA support"},
                   {where.pair, "mapped", "older reason"},
                   {{"host", "host", "", false}, "staged", "not this pair"}};
  return table;
}

Rules rules(const char* text) { return parse_rules(text, "rules.json", {kPaths}); }

/// The name of what moves `bytes`, through the hot path.
std::string via(const Route& route, uint64_t bytes) {
  const Choice& choice = route.lookup(bytes);
  if (choice.split < 0) return route.query().available[choice.path];
  std::string name;
  const ReadySplit& split = route.split(choice);
  for (uint32_t i = 0; i < split.parts; ++i) name += (i ? "+" : "") + route.query().available[split.path[i]];
  return name;
}

TEST(RouteRouter, FollowsTheMeasuredCosts) {
  const Router router(sample(), {}, false);
  const auto route = router.route(kQuery);
  EXPECT_EQ(via(*route, 0), "peer/store");
  EXPECT_EQ(via(*route, 8), "peer/store");
  EXPECT_EQ(via(*route, 1 << 20), "peer/store");
  EXPECT_EQ(via(*route, 32 << 20), "peer/copy");
  EXPECT_EQ(via(*route, uint64_t{1} << 30), "peer/copy+staged");
  EXPECT_EQ(via(*route, UINT64_MAX), "peer/copy+staged");
  EXPECT_TRUE(route->notes().empty());
  uint64_t before = 0;
  for (const Choice& choice : route->choices()) {
    EXPECT_GT(choice.max_bytes, before);
    before = choice.max_bytes;
  }
}

TEST(RouteRouter, ANicOfTheTableThatIsNotHereIsLeftOutAndTold) {
  Table table = sample();
  table.costs.push_back({kPut, "nic:torus", line(1, 500)});
  const char* expected =
      "the route table has costs of nic:torus, and this context has no such NIC: set PEERWAY_NIC";
  const auto router = [&](bool strict) {
    return Router(table, {}, strict, "", "", {{"nic:", "NIC", "PEERWAY_NIC", "a plugin's file"}});
  };
  const auto without = router(false).route(kQuery);
  EXPECT_EQ(via(*without, 8), "peer/store");
  ASSERT_EQ(without->notes().size(), 1u);
  EXPECT_NE(without->notes().front().find(expected), std::string::npos) << without->notes().front();
  try {
    (void)router(true).route(kQuery);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_TABLE);
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
  Query with = kQuery;
  with.available.push_back("nic:torus");
  EXPECT_EQ(via(*router(true).route(with), 8), "nic:torus");
  EXPECT_TRUE(router(true).route(with)->notes().empty());
  Query off = kQuery;  // there, and told why it cannot be used
  off.unavailable.push_back({"nic:torus", "no way"});
  EXPECT_TRUE(router(true).route(off)->notes().empty());
}

// Costs: peer/copy 5 us and 392 GB/s, peer/store 2 us and 330 GB/s.
TEST(RouteRouter, PathsThatCostMoreThanMeasuredAreChosenLater) {
  const auto path_with = [](double extra_of_store, const Rules& given = {}) {
    const Router router(sample(), given, false);
    const auto route = router.route(kQuery);
    const auto extra = [&](const std::string& name) { return name == "peer/store" ? extra_of_store : 0; };
    return route->query().available.at(route->path_with(4096, extra));
  };
  EXPECT_EQ(path_with(0), "peer/store");
  EXPECT_EQ(path_with(2.9), "peer/store");
  EXPECT_EQ(path_with(3.1), "peer/copy");
  EXPECT_EQ(path_with(3.1, rules(R"({"rules":[{"use":"peer/store"}]})")), "peer/store") << "a rule decides";
  const Router router(std::nullopt, {}, false);
  const auto unmeasured = router.route(kQuery);
  EXPECT_EQ(unmeasured->path_with(4096, [](const std::string&) { return 9; }), 0u) << "the preference";
  EXPECT_TRUE(std::isinf(unmeasured->cost(4096)));
  EXPECT_TRUE(std::isinf(unmeasured->cost_of("peer/store", 4096)));
  EXPECT_TRUE(std::isinf(unmeasured->cost_of("mapped", 4096)));
}

TEST(RouteRouter, SplitsAreReadyToCut) {
  const Router router(sample(), {}, false);
  const auto route = router.route(kQuery);
  const ReadySplit& split = route->split(route->lookup(uint64_t{1} << 30));
  const SplitPieces pieces = split.divide(uint64_t{1} << 30);
  ASSERT_EQ(pieces.count, 2u);
  EXPECT_EQ(split.path[pieces.piece[0].part], 0);
  EXPECT_EQ(split.path[pieces.piece[1].part], 2);
  EXPECT_EQ(pieces.piece[0].bytes + pieces.piece[1].bytes, uint64_t{1} << 30);
  const uint64_t slice = 12345;
  for (const SplitPiece& piece : split.divide(slice * 100000, slice)) EXPECT_EQ(piece.offset % slice, 0u);
}

TEST(RouteRouter, ASplitNeedsAllItsPaths) {
  const Router router(sample(), {}, false);
  const auto route = router.route({kPut, {"peer/copy", "peer/store"}, {}});
  EXPECT_EQ(via(*route, uint64_t{1} << 30), "peer/copy");
  EXPECT_EQ(via(*Router(sample(), rules(R"({"rules":[{"forbid":"staged"}]})"), false).route(kQuery), 1 << 30),
            "peer/copy");
}

TEST(RouteRouter, ASplitMeasuredAloneIsFollowed) {  // how tune tries one out
  Table table = sample();
  table.costs.clear();
  const Router router(table, {}, false);
  EXPECT_EQ(via(*router.route(kQuery), uint64_t{1} << 28), "peer/copy+staged");
}

TEST(RouteRouter, WhatARuleForbadeIsTold) {
  const Rules forbidding =
      rules(R"({"rules":[{"forbid":"peer/store"},{"forbid":"staged","bytes":"1M:"},{"forbid":"mapped"}]})");
  const Explanation bare = explain(Router(std::nullopt, forbidding, false), kQuery);
  ASSERT_EQ(bare.rows.size(), 2u);
  EXPECT_EQ(bare.rows[0].via, "peer/copy");
  EXPECT_EQ(bare.rows[0].why,
            "not measured; first in the order of preference; rules.json: rules[0] forbids peer/store");
  EXPECT_EQ(bare.rows[1].why,
            "not measured; first in the order of preference; rules.json: rules[0] forbids peer/store; "
            "rules.json: rules[1] forbids staged");
  const Explanation measured = explain(Router(sample(), forbidding, false), kQuery);
  EXPECT_EQ(measured.rows[0].via, "peer/copy");
  EXPECT_EQ(measured.rows[0].why, "lowest measured cost; rules.json: rules[0] forbids peer/store");
  // A later `use` gives it back, or takes the choice.
  const Rules undone = rules(R"({"rules":[{"forbid":"peer/store"},{"use":"peer/store"}]})");
  EXPECT_EQ(explain(Router(std::nullopt, undone, false), kQuery).rows[0].why, "rules.json: rules[1]");
}

TEST(RouteRouter, WithoutATableThePreferenceDecides) {
  const Router router(std::nullopt, {}, false, "routes.json does not exist");
  const auto route = router.route({kPut, {"staged", "peer/copy"}, {}});
  EXPECT_EQ(via(*route, 8), "staged");
  EXPECT_EQ(via(*route, 1 << 30), "staged");
  ASSERT_EQ(route->notes().size(), 1u);
  EXPECT_NE(route->notes()[0].find("routes.json does not exist"), std::string::npos);
  EXPECT_NE(route->notes()[0].find("peerway tune"), std::string::npos);
}

TEST(RouteRouter, TheNearestMeasuredShapeStandsIn) {
  const auto store_at_8 = [](ShapeClass measured, ShapeClass wanted) {
    Query query = kQuery;
    query.requested.shape = wanted;
    const auto route = Router(sample(measured), {}, false).route(query);
    EXPECT_EQ(route->notes().size(), 1u);
    return via(*route, 8) == "peer/store";  // else the order of preference decided
  };
  EXPECT_TRUE(store_at_8(ShapeClass::blocks_128, ShapeClass::blocks_16));
  EXPECT_TRUE(store_at_8(ShapeClass::blocks_16, ShapeClass::blocks_large));
  EXPECT_TRUE(store_at_8(ShapeClass::contiguous, ShapeClass::blocks_large));
  EXPECT_FALSE(store_at_8(ShapeClass::contiguous, ShapeClass::blocks_16));
  EXPECT_FALSE(store_at_8(ShapeClass::blocks_large, ShapeClass::contiguous));
}

TEST(RouteRouter, NoKindOfMemoryIsRoutedByAnothersCost) {
  const auto asks = [](const char* pair) {
    Query query = kQuery;
    query.requested.pair = parse_pair_class(pair);
    return Router(sample(), {}, false).route(query);
  };
  EXPECT_EQ(via(*asks("cuda->cuda/nvlink"), 8), "peer/store");
  for (const char* pair : {"cuda->cuda:private/nvlink", "cuda:private->cuda/nvlink"}) {
    EXPECT_EQ(via(*asks(pair), 8), "peer/copy") << "the order of preference decides";
    EXPECT_NE(asks(pair)->notes().at(0).find(std::string("no cost for put contiguous ") + pair),
              std::string::npos);
  }
}

TEST(RouteRouter, TheNearestMeasuredPairDiffersByItsLinkAlone) {
  const Router router(sample(), {}, false);
  const auto nearest = [&](Op op, const char* pair) {
    const auto nearest = router.nearest_measured(op, parse_pair_class(pair));
    return nearest ? to_string(*nearest) : "none";
  };
  EXPECT_EQ(nearest(Op::put, "cuda->cuda/nvlink"), "cuda->cuda/nvlink");
  for (const char* pair : {"cuda->cuda/pcie", "cuda->cuda"})
    EXPECT_EQ(nearest(Op::put, pair), "cuda->cuda/nvlink") << pair;
  for (const char* pair : {"cuda->host/nvlink", "cuda->cuda:private/nvlink", "remote:cuda->cuda"})
    EXPECT_EQ(nearest(Op::put, pair), "none") << pair;
  EXPECT_EQ(nearest(Op::send, "cuda->cuda/nvlink"), "none");
  EXPECT_FALSE(Router(std::nullopt, {}, false).nearest_measured(Op::put, kPut.pair));
}

TEST(RouteRouter, CostsOfAnotherPairStandInAndRulesStayThoseOfThePair) {
  Query query = kQuery;
  query.requested.pair = parse_pair_class("cuda->cuda/pcie");
  query.costs_of = kPut.pair;
  const auto best = [&](const char* pair) {
    Rule rule;
    rule.pair = pair;
    rule.paths = {"staged"};
    Rules rules;
    rules.add(rule);
    return via(*Router(sample(), rules, false).route(query), 8);
  };
  EXPECT_EQ(best("cuda->cuda/pcie"), "staged");
  EXPECT_EQ(best("cuda->cuda/nvlink"), via(*Router(sample(), {}, false).route(kQuery), 8));
}

TEST(RouteRouter, APathThatWasNotMeasuredIsNamed) {
  Query query = kQuery;
  query.available.insert(query.available.begin(), "peer/packets");
  const auto route = Router(sample(), {}, false).route(query);
  EXPECT_EQ(via(*route, 8), "peer/store");
  ASSERT_EQ(route->notes().size(), 1u);
  EXPECT_NE(route->notes()[0].find("peer/packets is available but was not measured"), std::string::npos);
  const auto forced = Router(sample(), rules(R"({"rules":[{"use":"peer/packets"}]})"), false).route(query);
  EXPECT_EQ(via(*forced, 8), "peer/packets");
}

TEST(RouteRouter, RulesForceARangeAndKeepTheRest) {
  const Router router(sample(), rules(R"({"rules":[{"use":"staged","bytes":"64K:1M"}]})"), false);
  const auto route = router.route(kQuery);
  EXPECT_EQ(via(*route, 65535), "peer/store");
  EXPECT_EQ(via(*route, 65536), "staged");
  EXPECT_EQ(via(*route, 1 << 20), "staged");
  EXPECT_EQ(via(*route, (1 << 20) + 1), "peer/store");
}

TEST(RouteRouter, StrictModeRefusesWhatARuleCannotHave) {
  const char* text = R"({"rules":[{"use":"mapped"}]})";
  const auto route = Router(sample(), rules(text), false).route(kQuery);
  EXPECT_EQ(via(*route, 8), "peer/store");
  ASSERT_EQ(route->notes().size(), 1u);
  try {
    (void)Router(sample(), rules(text), true).route(kQuery);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_TABLE);
    EXPECT_NE(std::string(error.what()).find("the driver refuses"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW((void)Router(std::nullopt, {}, true).route(kQuery));
}

TEST(RouteRouter, NoPathAtAll) {
  try {
    (void)Router(sample(), {}, false)
        .route({kPut, {}, {{"mapped", "the driver refuses"}, {"staged", "no memory"}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("mapped: the driver refuses\n  staged: no memory"),
              std::string::npos);
  }
}

TEST(RouteRouter, RandomTablesAndRulesNeverLeaveAHole) {
  std::mt19937 random(3);
  const char* patterns[] = {"peer", "staged", "*", "mapped", "peer/copy+staged", "nic:toy"};
  for (int trial = 0; trial < 200; ++trial) {
    Rules some;
    for (size_t i = 0, n = random() % 6; i < n; ++i) {
      const uint64_t from = 1 + random() % 4000000;
      some.add({.bytes = {from, from + 1 + random()},
                .paths = {patterns[random() % std::size(patterns)]},
                .forbid = random() % 2 == 0,
                .origin = "rule"});
    }
    Table table = sample();
    std::uniform_real_distribution<double> factor(0.5, 2);
    for (Cost& cost : table.costs) {
      std::vector<Point> points = cost.line.points();
      for (Point& point : points) point.microseconds *= factor(random);
      cost.line = CostLine(points);
    }
    Query query = kQuery;
    if (random() % 2) query.available.erase(query.available.begin() + random() % 3);
    const auto route = Router(table, some, false).route(query);
    ASSERT_EQ(route->choices().back().max_bytes, UINT64_MAX);
    uint64_t at = 1;
    for (const Decision& decision : route->decisions()) {
      ASSERT_EQ(decision.range.from, at);
      at = decision.range.to;
      // The compact array says the same as the decisions.
      for (uint64_t bytes : {decision.range.from, decision.range.to - 1})
        ASSERT_EQ(via(*route, bytes), route->options()[decision.range.choice].candidate.name);
    }
    ASSERT_EQ(at, kEnd);
  }
}

TEST(RouteRouter, DecidesOnceForAllThreads) {
  const Router router(sample(), {}, false);
  std::vector<std::shared_ptr<const Route>> routes(8);
  std::vector<std::thread> threads;
  for (auto& route : routes) threads.emplace_back([&] { route = router.route(kQuery); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& route : routes) EXPECT_EQ(route, routes[0]);
  Query other = kQuery;
  other.requested.op = Op::get;
  EXPECT_NE(router.route(other), routes[0]);
}

TEST(RouteExplain, TellsPathCostNextAndReasons) {
  const Router router(sample(),
                      rules(R"({"rules":[{"use":"staged","bytes":"64K:1M"},{"use":"mapped","bytes":"8"}]})"),
                      false);
  const Explanation e = explain(router, kQuery);
  ASSERT_GE(e.rows.size(), 4u);
  EXPECT_EQ(e.measured, "2026-11-21");
  EXPECT_EQ(e.rows.front().from, 1u);
  EXPECT_EQ(e.rows.back().to, kEnd);
  EXPECT_EQ(e.rows.back().shown_to, uint64_t{1} << 30);
  EXPECT_EQ(e.rows.back().via, "peer/copy 90 % + staged 10 %");
  EXPECT_EQ(e.rows.back().next->via, "peer/copy");
  EXPECT_GT(e.rows.back().next->least_margin, 0);
  EXPECT_GE(e.rows.back().next->most_margin, e.rows.back().next->least_margin);
  EXPECT_DOUBLE_EQ(*e.rows.back().spread, 0.01);
  EXPECT_GT(e.rows.back().next->us_to, *e.rows.back().us_to);
  bool ruled = false;
  for (const Row& row : e.rows) {
    EXPECT_LE(*row.us_from, *row.us_to);
    EXPECT_FALSE(row.why.empty());
    for (const Point& point : row.points) EXPECT_TRUE(point.bytes >= row.from && point.bytes < row.to);
    if (row.via != "staged") continue;
    ruled = true;
    EXPECT_EQ(row.why, "rules.json: rules[0]");
    EXPECT_EQ(row.points.size(), 5u);        // 64K, 128K, ... 1M
    EXPECT_LT(row.next->us_to, *row.us_to);  // what the rule costs
    EXPECT_LT(row.next->most_margin, 0);
  }
  EXPECT_TRUE(ruled);
  // The reason given now goes before the table's; those of other pairs do not appear.
  const std::vector<Unavailable> expected = {{"mapped", "the driver refuses"}, {"ucx", "no CUDA support"}};
  EXPECT_EQ(e.unavailable, expected);
  ASSERT_EQ(e.notes.size(), 1u);
}

TEST(RouteExplain, AMeasuredSizeIsToldAsItWasMeasured) {
  Table table = sample();
  table.splits.clear();
  table.costs = {{kPut, "peer/copy", CostLine({{8, 0.130, 0.01}, {16, 0.325, 0.5}, {32, 0.142, 0.01}})}};
  const Explanation e = explain(Router(table, {}, false), kQuery);
  ASSERT_EQ(e.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(e.rows[0].points.at(1).microseconds, 0.325);
  EXPECT_DOUBLE_EQ(*e.rows[0].spread, kMostSpread);
  EXPECT_DOUBLE_EQ(table.costs[0].line.at(16), 0.325);
}

TEST(RouteExplain, ALeadWithinTheSpreadIsNotToldAsMore) {
  const auto why = [](double other) {
    Table table = sample();
    table.splits.clear();
    table.costs = {{kPut, "peer/copy", CostLine({{8, 1.0, 0.05}, {64, 2.0, 0.05}})},
                   {kPut, "peer/store", CostLine({{8, 1.05, 0.05}, {64, other, 0.05}})}};
    const Explanation e = explain(Router(table, {}, false), kQuery);
    EXPECT_EQ(e.rows.size(), 1u);
    EXPECT_EQ(e.rows[0].via, "peer/copy");
    return e.rows[0].why;
  };
  EXPECT_EQ(why(2.1), "lowest measured cost, but not by more than the spread");
  EXPECT_EQ(why(2.3), "lowest measured cost");  // at one of the sizes
}

TEST(RouteExplain, AsJson) {
  const auto measured = nlohmann::json::parse(to_json(explain(Router(sample(), {}, false), kQuery)));
  EXPECT_EQ(measured["pair"], "cuda->cuda/nvlink");
  EXPECT_EQ(measured["rows"].back()["to"], nullptr);
  EXPECT_EQ(measured["rows"].back()["parts"].size(), 2u);
  EXPECT_EQ(measured["rows"][0]["why"], "lowest measured cost");
  EXPECT_EQ(measured["rows"][0]["next"]["margin"].size(), 2u);
  EXPECT_EQ(measured["rows"][0]["spread"], 0.01);
  EXPECT_EQ(measured["machine"]["gpu 0"], "H200");
  const auto bare = nlohmann::json::parse(to_json(explain(Router(std::nullopt, {}, false), kQuery)));
  EXPECT_EQ(bare["rows"].size(), 1u);
  EXPECT_EQ(bare["rows"][0]["us_from"], nullptr);
  EXPECT_EQ(bare["rows"][0]["next"], nullptr);
  EXPECT_EQ(bare["rows"][0]["spread"], nullptr);
  EXPECT_EQ(bare["rows"][0]["why"], "not measured; first in the order of preference");
}

}  // namespace
}  // namespace pw::route
