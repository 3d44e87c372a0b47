// Makes decisions from the table, the rules and the available paths.
#include "route/router.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/status.h"

namespace pw::route {
namespace {

/// Returns everything that a decision depends on as text: the key of the cache. No name contains a line
/// break.
std::string cache_key(const Query& query) {
  std::string key = to_string(query.requested) + "\n" + to_string(query.measured_pair());
  for (const std::string& path : query.available) key += "\n+" + path;
  for (const Unavailable& entry : query.unavailable) key += "\n-" + entry.path + " " + entry.why;
  return key;
}

[[noreturn]] void nothing_available(const Query& query) {
  std::string reasons;
  for (const Unavailable& entry : query.unavailable) reasons += format("\n  {}: {}", entry.path, entry.why);
  throw Error(PW_UNSUPPORTED, format("no path can do {}{}", to_string(query.requested),
                                     reasons.empty() ? "; none was offered" : ":" + reasons));
}

/// The distance between shape classes that say nothing about each other's cost.
constexpr int kUnlike = 100;

/// How badly one shape class represents the cost of another. Only the largest blocks behave like contiguous
/// data.
int distance(ShapeClass a, ShapeClass b) {
  if (a == b) return 0;
  const auto [low, high] = std::minmax(a, b);
  if (low != ShapeClass::contiguous) return static_cast<int>(high) - static_cast<int>(low);
  return b == ShapeClass::contiguous && high == ShapeClass::blocks_large ? 10 : kUnlike;
}

bool offers(const Query& query, const std::string& path) {
  return std::find(query.available.begin(), query.available.end(), path) != query.available.end();
}

bool offers(const Query& query, const Split& split) {
  return std::all_of(split.parts.begin(), split.parts.end(),
                     [&](const SplitPart& part) { return offers(query, part.path); });
}

/// Returns the class nearest to `requested.shape` for which the table has a cost of an available path, or of
/// a split over available paths.
std::optional<ShapeClass> measured_class(const Table& table, const Query& query) {
  std::optional<ShapeClass> best;
  int least = kUnlike;
  const auto consider = [&](const Case& measured_case, bool offered) {
    if (measured_case.op != query.requested.op || !(measured_case.pair == query.measured_pair()) || !offered)
      return;
    const int apart = distance(query.requested.shape, measured_case.shape);
    if (apart < least) least = apart, best = measured_case.shape;
  };
  for (const Cost& cost : table.costs) consider(cost.measured_case, offers(query, cost.path));
  for (const SplitCost& split : table.splits) consider(split.measured_case, offers(query, split.split));
  return best;
}

/// Returns the paths of a family for which the table has a cost in this case, but which this context lacks
/// and gave no reason for.
std::set<std::string> missing_of(const PathFamily& family, const Table& table, const Query& query) {
  std::set<std::string> missing;
  const auto mentioned = [&](const std::string& path) {
    return std::ranges::find(query.unavailable, path, &Unavailable::path) != query.unavailable.end();
  };
  for (const Cost& cost : table.costs)
    if (cost.measured_case == query.requested && cost.path.starts_with(family.prefix) &&
        !offers(query, cost.path) && !mentioned(cost.path))
      missing.insert(cost.path);
  return missing;
}

uint16_t index_of(std::span<const std::string> names, const std::string& name) {
  return static_cast<uint16_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

ReadySplit ready(const Split& split, std::span<const std::string> available) {
  ReadySplit out;
  for (const SplitPart& part : split.parts) {
    out.path[out.parts] = index_of(available, part.path);
    out.share[out.parts++] = part.share;
  }
  out.minimum_part = split.minimum_part;
  out.align = split.align;
  out.name = "split, " + describe(split);
  return out;
}

Why reason(const Allowance& allowance, std::span<const Candidate> candidates, const Range& range) {
  if (!allowance.why.empty()) return Why::rule;
  if (!std::isfinite(candidates[range.choice].at(range.from))) return Why::preference;
  if (allowance.allowed.size() == 1) return Why::only_one;
  return range.within_spread ? Why::within_spread : Why::cheapest;
}

}  // namespace

Router::Router(std::optional<Table> table, Rules rules, bool strict, std::string why_no_table,
               std::string table_note, std::vector<PathFamily> families)
    : table_(std::move(table)),
      rules_(std::move(rules)),
      strict_(strict),
      why_no_table_(std::move(why_no_table)),
      table_note_(std::move(table_note)),
      families_(std::move(families)) {}

bool Router::measured(Op op, const PairClass& pair) const {
  return table_ && std::ranges::any_of(table_->costs, [&](const Cost& cost) {
           return cost.measured_case.op == op && cost.measured_case.pair == pair;
         });
}

std::optional<PairClass> Router::nearest_measured(Op op, const PairClass& pair) const {
  if (measured(op, pair)) return pair;
  if (!table_) return std::nullopt;
  for (const Cost& cost : table_->costs) {
    PairClass over_same_link = cost.measured_case.pair;
    over_same_link.link = pair.link;
    if (cost.measured_case.op == op && over_same_link == pair) return cost.measured_case.pair;
  }
  return std::nullopt;
}

std::shared_ptr<const Route> Router::route(const Query& query) const {
  const std::string key = cache_key(query);
  std::lock_guard lock(mutex_);
  if (const auto route = routes_.find(key); route != routes_.end()) return route->second;
  return routes_[key] = make_route(query);
}

void Router::add_options(Route& route) const {
  const Query& query = route.query_;
  for (const std::string& path : query.available)
    route.options_.push_back({{.name = path, .line = {}}, {{path, kShares}}});
  if (!table_) {
    route.notes_.push_back(format("no route table{}{}: the order of preference decides; run `peerway tune`",
                                  why_no_table_.empty() ? "" : ": ", why_no_table_));
    return;
  }
  const auto shape = measured_class(*table_, query);
  if (!shape) {
    route.notes_.push_back(
        format("the route table has no cost for {}: the order of preference decides; run "
               "`peerway tune`",
               to_string(query.requested)));
    return;
  }
  if (*shape != query.requested.shape)
    route.notes_.push_back(format("{} was not measured: the costs are those of {}; run `peerway tune`",
                                  to_string(query.requested), to_string(*shape)));
  if (!table_note_.empty()) route.notes_.push_back(table_note_);
  const Case measured{query.requested.op, *shape, query.measured_pair()};
  for (const Cost& cost : table_->costs) {
    const size_t index = index_of(query.available, cost.path);
    if (cost.measured_case == measured && index < query.available.size())
      route.options_[index].candidate.line = cost.line;
  }
  for (const Option& option : route.options_)
    if (!option.candidate.line.measured())
      route.notes_.push_back(format("{} is available but was not measured for {}; run `peerway tune`",
                                    option.candidate.name, to_string(measured)));
  for (const SplitCost& split : table_->splits) {
    if (!(split.measured_case == measured) || !offers(query, split.split)) continue;
    const uint64_t from = split.line.points().front().bytes;
    route.options_.push_back(
        {{.name = name_of(split.split), .line = split.line, .from = from}, split.split.parts});
    route.splits_.push_back(ready(split.split, query.available));
  }
}

std::shared_ptr<const Route> Router::make_route(const Query& query) const {
  if (query.available.empty()) nothing_available(query);
  auto route = std::make_shared<Route>();
  route->query_ = query;
  add_options(*route);

  std::vector<Candidate> candidates;
  std::vector<Choosable> choosable;
  for (const Option& option : route->options_) {
    candidates.push_back(option.candidate);
    choosable.emplace_back();
    for (const SplitPart& part : option.parts) choosable.back().paths.push_back(part.path);
  }
  std::vector<std::string> unmet;
  for (const PathFamily& family : families_) {
    if (!table_) break;
    for (const std::string& path : missing_of(family, *table_, query))
      unmet.push_back(
          format("the route table has costs of {}, and this context has no such {}: set {} as when it was "
                 "measured; left out",
                 path, family.member, family.setting));
  }
  for (const Allowance& allowance : rules_.apply(query.requested, choosable, query.unavailable, unmet))
    for (const Range& range : lower_envelope(candidates, allowance.allowed, allowance.sizes))
      route->decisions_.push_back(
          {range, reason(allowance, candidates, range), allowance.why, allowance.forbids, allowance.allowed});
  if (strict_ && !unmet.empty())
    throw Error(PW_BAD_TABLE,
                format("{}; strict mode allows no fallback: correct that or unset strict", unmet.front()));
  route->notes_.insert(route->notes_.end(), unmet.begin(), unmet.end());

  const size_t singles = query.available.size();
  for (const Decision& decision : route->decisions_) {
    const size_t option = decision.range.choice;
    Choice choice{.max_bytes = decision.range.to - 1};
    if (option < singles)
      choice.path = static_cast<uint16_t>(option);
    else
      choice.split = static_cast<int16_t>(option - singles);
    auto& choices = route->choices_;
    if (!choices.empty() && choices.back().path == choice.path && choices.back().split == choice.split)
      choices.back() = choice;  // two decisions for one path are one choice at run time
    else
      choices.push_back(choice);
  }
  route->choices_.back().max_bytes = UINT64_MAX;
  return route;
}

}  // namespace pw::route
