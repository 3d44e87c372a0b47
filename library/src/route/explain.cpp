// Makes the rows of an explanation, and their JSON.
#include "route/explain.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace pw::route {
namespace {

using nlohmann::json;

std::string shown_name(const Option& option) {
  return option.parts.size() == 1 ? option.candidate.name
                                  : describe({.parts = option.parts, .minimum_part = 1, .align = 1});
}

std::string why_text(const Decision& decision) {
  switch (decision.why) {
    case Why::cheapest:
      return "lowest measured cost";
    case Why::within_spread:
      return "not above the lowest measured cost by more than the spread";
    case Why::rule:
      return decision.rule;
    case Why::only_one:
      return "the only path allowed";
    case Why::preference:
      return "not measured; first in the order of preference";
  }
  return "";
}

std::optional<double> known(double cost) { return std::isfinite(cost) ? std::optional(cost) : std::nullopt; }

/// Returns the largest size measured for any option: beyond it costs are extrapolated and not worth printing.
uint64_t largest_measured(const std::vector<Option>& options) {
  uint64_t largest = 0;
  for (const Option& option : options)
    if (option.candidate.line.measured())
      largest = std::max(largest, option.candidate.line.points().back().bytes);
  return largest;
}

/// Returns the sizes at which a row compares its path with another: the row's measured sizes or, if it has
/// none, its middle.
std::vector<uint64_t> compared_sizes(const Row& row, const Candidate& other, uint64_t middle) {
  std::vector<uint64_t> sizes;
  for (const Point& point : row.points)
    if (point.bytes >= other.from) sizes.push_back(point.bytes);
  if (sizes.empty()) sizes.push_back(std::max(middle, other.from));
  return sizes;
}

/// Fills in by how much the next best candidate is more expensive.
void fill_margins(Row& row, const Candidate& chosen, const Candidate& next, uint64_t middle) {
  std::vector<double> margins;
  for (uint64_t bytes : compared_sizes(row, next, middle))
    margins.push_back(next.at(bytes) / chosen.at(bytes) - 1);
  const auto [least, most] = std::ranges::minmax(margins);
  row.next->least_margin = least;
  row.next->most_margin = most;
}

/// Whether the other candidate is more expensive by more than the spread at any of the sizes.
bool is_clear(const Row& row, const Candidate& chosen, const Candidate& other, uint64_t middle) {
  return std::ranges::any_of(compared_sizes(row, other, middle), [&](uint64_t bytes) {
    return clearly_below(chosen.at(bytes), chosen.line.spread(bytes), other.at(bytes),
                         other.line.spread(bytes));
  });
}

Row make_row(const Route& route, const Decision& decision) {
  const std::vector<Option>& options = route.options();
  const Option& chosen = options[decision.range.choice];
  Row row{.from = decision.range.from,
          .to = decision.range.to,
          .shown_to = decision.range.to - 1,
          .via = shown_name(chosen),
          .parts = chosen.parts,
          .us_from = {},
          .us_to = {},
          .spread = {},
          .next = {},
          .why = why_text(decision),
          .points = {}};
  if (row.to == kEnd) row.shown_to = std::max(row.from, largest_measured(options));
  row.us_from = known(chosen.candidate.at(row.from));
  row.us_to = known(chosen.candidate.at(row.shown_to));
  if (row.us_from)
    row.spread = std::max(chosen.candidate.line.spread(row.from), chosen.candidate.line.spread(row.shown_to));
  for (const Point& point : chosen.candidate.line.points())
    if (point.bytes >= row.from && point.bytes < row.to) {
      row.points.push_back(point);
      row.spread = std::max(row.spread.value_or(0), chosen.candidate.line.spread(point.bytes));
    }
  const auto middle =
      static_cast<uint64_t>(std::sqrt(static_cast<double>(row.from) * static_cast<double>(row.shown_to)));

  // Compares with all options, including those that a rule excluded: that is what the rule costs.
  std::vector<Candidate> candidates;
  std::vector<size_t> all;
  for (const Option& option : options) {
    all.push_back(all.size());
    candidates.push_back(option.candidate);
  }
  const size_t next = runner_up(candidates, all, decision.range.choice, middle);
  if (next != decision.range.choice) {
    const uint64_t from = std::max(row.from, options[next].candidate.from);
    row.next = NextBest{shown_name(options[next]), options[next].candidate.at(from),
                        options[next].candidate.at(row.shown_to), 0, 0};
    fill_margins(row, chosen.candidate, options[next].candidate, middle);
  }
  // The lowest cost decided only among the options that the rules left.
  const size_t rival = runner_up(candidates, decision.allowed, decision.range.choice, middle);
  if (decision.why == Why::cheapest && rival != decision.range.choice &&
      !is_clear(row, chosen.candidate, options[rival].candidate, middle))
    row.why += ", but not by more than the spread";
  if (!decision.forbids.empty()) row.why += "; " + decision.forbids;
  return row;
}

json cost(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json row_json(const Row& row) {
  json parts = json::array(), points = json::array(), next = nullptr;
  for (const SplitPart& part : row.parts)
    parts.push_back({{"path", part.path}, {"share", static_cast<double>(part.share) / kShares}});
  for (const Point& p : row.points)
    points.push_back({{"bytes", p.bytes}, {"microseconds", p.microseconds}, {"spread", p.spread}});
  if (row.next)
    next = {{"via", row.next->via},
            {"us_from", row.next->us_from},
            {"us_to", row.next->us_to},
            {"margin", {row.next->least_margin, row.next->most_margin}}};
  return {{"from", row.from},
          {"to", row.to == kEnd ? json(nullptr) : json(row.to)},
          {"shown_to", row.shown_to},
          {"via", row.via},
          {"parts", parts},
          {"us_from", cost(row.us_from)},
          {"us_to", cost(row.us_to)},
          {"spread", cost(row.spread)},
          {"next", next},
          {"why", row.why},
          {"points", points}};
}

}  // namespace

Explanation explain(const Router& router, const Query& query) {
  const auto route = router.route(query);
  Explanation out{.requested = query.requested,
                  .measured = {},
                  .tool = {},
                  .builtin = false,
                  .machine = {},
                  .rows = {},
                  .unavailable = query.unavailable,
                  .notes = route->notes()};
  for (const Decision& decision : route->decisions()) out.rows.push_back(make_row(*route, decision));
  if (!router.table()) return out;
  out.measured = router.table()->date;
  out.tool = router.table()->tool;
  out.machine = router.table()->machine;
  for (const MissingPath& missing : router.table()->missing) {
    const auto same = [&](const Unavailable& entry) { return entry.path == missing.path; };
    const bool listed = std::any_of(out.unavailable.begin(), out.unavailable.end(), same);
    const bool here =
        std::find(query.available.begin(), query.available.end(), missing.path) != query.available.end();
    if (missing.pair == query.requested.pair && !listed && !here)
      out.unavailable.push_back({missing.path, missing.why});
  }
  return out;
}

std::string to_json(const Explanation& explanation) {
  json rows = json::array(), unavailable = json::array();
  for (const Row& row : explanation.rows) rows.push_back(row_json(row));
  for (const Unavailable& entry : explanation.unavailable)
    unavailable.push_back({{"path", entry.path}, {"why", entry.why}});
  const json out = {{"op", to_string(explanation.requested.op)},
                    {"shape", to_string(explanation.requested.shape)},
                    {"pair", to_string(explanation.requested.pair)},
                    {"measured", explanation.measured},
                    {"tool", explanation.tool},
                    {"builtin", explanation.builtin},
                    {"machine", explanation.machine},
                    {"rows", rows},
                    {"unavailable", unavailable},
                    {"notes", explanation.notes}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace pw::route
