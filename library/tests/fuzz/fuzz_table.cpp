// Any bytes as a route table: parsed, or refused with PW_BAD_TABLE. What was parsed must survive print and
// parse, and must route every size. needs: route/*.cpp base/status.cpp
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "route/explain.h"
#include "route/router.h"

namespace pw::route {
namespace {

using fuzz::require;

void route_all(const Table& table) {
  const Router router(table, {}, false);
  for (size_t i = 0; i < table.costs.size() && i < 4; ++i) {
    const Case measured = table.costs[i].measured_case;
    Query query{measured, {}, {}};
    for (const Cost& cost : table.costs)
      if (cost.measured_case == measured && query.available.size() < 8) query.available.push_back(cost.path);
    const auto route = router.route(query);
    for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{65536}, UINT64_MAX}) {
      const Choice& choice = route->lookup(bytes);
      if (choice.split < 0) {
        require(choice.path < query.available.size());
      } else {
        uint64_t sum = 0;
        for (const SplitPiece& piece : route->split(choice).divide(bytes)) sum += piece.bytes;
        require(sum == bytes);
      }
    }
    require(!to_json(explain(router, query)).empty());
  }
}

}  // namespace

FUZZ(fuzz_table) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Table table = parse_table(text, "table");
    const std::string printed = print_table(table);
    require(print_table(parse_table(printed, "printed")) == printed);
    route_all(table);
  } catch (const Error& error) {
    require(error.status() == PW_BAD_TABLE);
  }
}

}  // namespace pw::route
