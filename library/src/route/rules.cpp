// Applies rules: which candidates may be used at which sizes.
#include "route/rules.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

bool matches(const std::string& pattern, std::string_view text) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

std::string joined(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

bool names(const std::string& pattern, std::string_view path) {
  return matches(pattern, path) || path.starts_with(pattern + "/");
}

/// Whether "a+b" names the split over these paths, in any order.
bool names_split(std::string_view pattern, const std::vector<std::string>& paths) {
  std::vector<bool> used(paths.size(), false);
  for (size_t start = 0; start <= pattern.size();) {
    const size_t end = std::min(pattern.find('+', start), pattern.size());
    const std::string part(pattern.substr(start, end - start));
    size_t i = 0;
    while (i < paths.size() && (used[i] || !names(part, paths[i]))) ++i;
    if (i == paths.size()) return false;
    used[i] = true;
    start = end + 1;
  }
  return std::find(used.begin(), used.end(), false) == used.end();
}

/// A split is covered by `use` if it is named itself or all of its paths are, and by `forbid` if it is named
/// itself or any of its paths is.
bool covers(const Rule& rule, const Choosable& candidate) {
  const auto& paths = candidate.paths;
  if (paths.size() > 1 && std::any_of(rule.paths.begin(), rule.paths.end(), [&](const std::string& pattern) {
        return pattern.find('+') != std::string::npos && names_split(pattern, paths);
      }))
    return true;
  const auto named = [&](const std::string& path) { return rule.names(path); };
  return rule.forbid ? std::any_of(paths.begin(), paths.end(), named)
                     : std::all_of(paths.begin(), paths.end(), named);
}

void note(std::vector<std::string>& notes, std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

std::string why_unavailable(const Rule& rule, std::span<const Unavailable> unavailable) {
  std::string reasons;
  for (const Unavailable& entry : unavailable)
    if (rule.names(entry.path))
      reasons += format("{}{}: {}", reasons.empty() ? "" : "; ", entry.path, entry.why);
  return reasons.empty() ? "no such path serves this pair" : reasons;
}

/// Describes the rules that forbid candidates which are still forbidden in the end.
std::string what_was_taken(std::span<const Rule* const> rules, std::span<const Choosable> candidates,
                           const std::vector<bool>& forbidden) {
  std::string reasons;
  for (const Rule* rule : rules) {
    if (!rule->forbid) continue;
    bool any = false;
    for (size_t i = 0; i < candidates.size(); ++i) any |= forbidden[i] && covers(*rule, candidates[i]);
    if (any)
      reasons += format("{}{} forbids {}", reasons.empty() ? "" : "; ", rule->origin, joined(rule->paths));
  }
  return reasons;
}

/// Applies the rules that hold in one range of sizes, in order.
Allowance decide(SizeRange sizes, std::span<const Rule* const> rules, const Case& requested,
                 std::span<const Choosable> candidates, std::span<const Unavailable> unavailable,
                 std::vector<std::string>& notes) {
  std::vector<bool> forbidden(candidates.size(), false), forced(candidates.size(), false);
  std::string forced_by, forbidden_by;
  for (const Rule* rule : rules) {
    std::vector<bool> covered(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) covered[i] = covers(*rule, candidates[i]);
    const bool any = std::find(covered.begin(), covered.end(), true) != covered.end();
    if (rule->forbid) {
      for (size_t i = 0; i < candidates.size(); ++i)
        if (covered[i]) forbidden[i] = true, forced[i] = false;
      if (any) forbidden_by = rule->origin;
    } else if (any) {
      forced = covered;
      forced_by = rule->origin;
      for (size_t i = 0; i < candidates.size(); ++i)
        if (covered[i]) forbidden[i] = false;
    } else {
      note(notes, format("{} asks for {}, which is not available for {} ({}); left out", rule->origin,
                         joined(rule->paths), to_string(requested), why_unavailable(*rule, unavailable)));
    }
  }
  Allowance out{.sizes = sizes, .allowed = {}, .why = {}, .forbids = {}};
  const auto collect = [&](const auto& take) {
    for (size_t i = 0; i < candidates.size(); ++i)
      if (take(i)) out.allowed.push_back(i);
  };
  collect([&](size_t i) { return forced[i]; });
  if (!out.allowed.empty()) {
    out.why = forced_by;
    return out;
  }
  collect([&](size_t i) { return !forbidden[i]; });
  if (!out.allowed.empty()) {
    out.forbids = what_was_taken(rules, candidates, forbidden);
    return out;
  }
  collect([](size_t) { return true; });
  note(
      notes,
      format("the rules forbid every path there is for {} from {} bytes on (the last is {}); all are allowed "
             "again",
             to_string(requested), print_size(sizes.from), forbidden_by));
  return out;
}

}  // namespace

bool Rule::applies(const Case& requested) const {
  return matches(op, to_string(requested.op)) && matches(shape, to_string(requested.shape)) &&
         matches(pair, to_string(requested.pair)) && can_be_followed(requested.op);
}

// Methods of plans are for sends, and paths are for puts and gets. A rule without "op" that names only one of
// the two kinds does not restrict the other kind.
bool Rule::can_be_followed(Op operation) const {
  if (forbid || op != "*") return true;
  if (operation == Op::send)
    return std::ranges::any_of(kPlanMethods, [&](auto method) { return names(method); });
  return !std::ranges::all_of(paths, [](const auto& pattern) { return pattern.starts_with("plan"); });
}

bool Rule::names(std::string_view path) const {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& pattern) { return route::names(pattern, path); });
}

std::vector<Allowance> Rules::apply(const Case& requested, std::span<const Choosable> candidates,
                                    std::span<const Unavailable> unavailable,
                                    std::vector<std::string>& notes) const {
  if (candidates.empty())
    throw Error(PW_INVALID_ARGUMENT, "rules need at least one candidate to choose from");
  std::vector<const Rule*> relevant;
  std::vector<uint64_t> cuts = {1, kEnd};
  for (const Rule& rule : rules_) {
    if (!rule.applies(requested)) continue;
    relevant.push_back(&rule);
    for (uint64_t cut : {rule.bytes.from, rule.bytes.to})
      if (cut > 1 && cut < kEnd) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  std::vector<Allowance> out;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<const Rule*> here;
    for (const Rule* rule : relevant)
      if (rule->bytes.from <= cuts[i] && cuts[i] < rule->bytes.to) here.push_back(rule);
    Allowance next = decide({cuts[i], cuts[i + 1]}, here, requested, candidates, unavailable, notes);
    if (!out.empty() && out.back().allowed == next.allowed && out.back().why == next.why &&
        out.back().forbids == next.forbids)
      out.back().sizes.to = next.sizes.to;
    else
      out.push_back(std::move(next));
  }
  return out;
}

}  // namespace pw::route
