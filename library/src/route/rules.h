// The user's rules: paths that a person prefers or forbids, by operation, pair, shape and size. Later rules
// win. A rule that cannot be followed is skipped, with a note that says why; it never leaves a size without a
// path.
//
//     {"rules": [{"op": "put", "pair": "cuda->cuda*", "bytes": "64K:1M", "use": "peer/store"},
//                {"forbid": "staged"}]}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "route/class.h"
#include "route/size_text.h"
#include "transport/known.h"

namespace pw::route {

/// The reason why a path cannot serve the pair.
struct Unavailable {
  std::string path;
  std::string why;
  bool operator==(const Unavailable&) const = default;
};

struct Rule {
  std::string op = "*", shape = "*", pair = "*";  ///< patterns (shell globs) over the names of class.h
  SizeRange bytes;
  std::vector<std::string> paths;  ///< patterns; "peer" stands for all of peer/*, "a+b" for a split
  bool forbid = false;             ///< if false, the rule is `use`
  std::string origin;              ///< "rules.json: rules[2]", for messages

  [[nodiscard]] bool applies(const Case& requested) const;
  /// Whether the rule can name a path or method that such operations may use.
  [[nodiscard]] bool can_be_followed(Op operation) const;
  /// Whether one of the patterns names the path.
  [[nodiscard]] bool names(std::string_view path) const;
};

/// A candidate as rules see it: one path, or the paths of a split.
struct Choosable {
  std::vector<std::string> paths;
};

/// The candidates that the rules leave for a range of sizes. `allowed` is never empty and keeps the order of
/// the candidates.
struct Allowance {
  SizeRange sizes;
  std::vector<size_t> allowed;
  std::string why;  ///< the rule that forced the choice; empty if the costs decide
  std::string
      forbids;  ///< where the costs decide: which rules took what away, "rules[0] forbids staged; ..."
};

class Rules {
 public:
  Rules() = default;
  explicit Rules(std::vector<Rule> rules) : rules_(std::move(rules)) {}
  [[nodiscard]] const std::vector<Rule>& list() const { return rules_; }
  void add(Rule rule) { rules_.push_back(std::move(rule)); }  ///< wins over all earlier rules

  /// Returns sorted allowances without gaps over all sizes. Adds each rule that could not be followed to
  /// `notes`, once. `candidates` must not be empty.
  [[nodiscard]] std::vector<Allowance> apply(const Case& requested, std::span<const Choosable> candidates,
                                             std::span<const Unavailable> unavailable,
                                             std::vector<std::string>& notes) const;

 private:
  std::vector<Rule> rules_;
};

/// Returns a `use` rule for every case, from the comma-separated names that pw_context_use takes. Throws
/// Error(PW_INVALID_ARGUMENT) if a name is not a path.
Rule use_rule(std::string_view paths, const KnownPaths& known);

/// Parses a rules file. Every path of a family is allowed, because jobs that share the file have different
/// members. Throws Error(PW_BAD_TABLE) with the file, the place, the value and what is allowed.
Rules parse_rules(std::string_view text, const std::string& file, const KnownPaths& known);

/// Reads and parses a file. Throws Error(PW_BAD_TABLE), also if the file is missing or cannot be read.
Rules load_rules(const std::string& file, const KnownPaths& known);

}  // namespace pw::route
