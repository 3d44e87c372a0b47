// Explains a decision: for each range of sizes the chosen path, its cost, the next best path and why it was
// not chosen; also why other paths are unavailable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "route/router.h"

namespace pw::route {

/// The best other candidate of a row: its cost at both ends, and by how much it is more expensive than the
/// choice, relative, at the measured sizes within the row. Negative if a rule made the choice, or within the
/// spread.
struct NextBest {
  std::string via;
  double us_from = 0;
  double us_to = 0;
  double least_margin = 0;
  double most_margin = 0;
};

struct Row {
  uint64_t from = 1;
  uint64_t to = kEnd;  ///< one past the last size; kEnd in the last row
  uint64_t shown_to =
      0;  ///< the size that `us_to` is for: the last of the row or, in an open row, the largest measured
  std::string via;  ///< "peer/copy", or for a split "peer/copy 90 % + staged 10 %"
  std::vector<SplitPart> parts;
  std::optional<double> us_from, us_to;  ///< empty if it was not measured
  std::optional<double> spread;          ///< relative; the largest within the row
  std::optional<NextBest> next;
  std::string why;
  std::vector<Point> points;  ///< measured points of this path within the row
};

struct Explanation {
  Case requested;
  std::string measured;  ///< the table's date; empty without a table
  std::string tool;
  bool builtin = false;  ///< the table came with Peerway
  Machine machine;
  std::vector<Row> rows;
  std::vector<Unavailable> unavailable;
  std::vector<std::string> notes;
};

/// Returns the decision of Router::route for the query, explained. Throws like route(). Adds the table's
/// reasons why paths of the same pair are missing to the reasons in the query.
Explanation explain(const Router& router, const Query& query);

/// {"op", "shape", "pair", "measured", "tool", "builtin", "machine": {name: text}, "rows": [{"from", "to",
/// "shown_to", "via", "parts": [{"path", "share"}], "us_from", "us_to", "spread", "next": {"via", "us_from",
/// "us_to", "margin": [least, most]} or null, "why", "points": [{"bytes", "microseconds", "spread"}]}],
/// "unavailable":
/// [{"path", "why"}], "notes": [text]}. "to" is null in the open last row; costs are null when not measured;
/// shares, spreads and margins are parts of one.
std::string to_json(const Explanation& explanation);

}  // namespace pw::route
