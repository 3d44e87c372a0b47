// Decides, for a case and the available paths, which path moves which sizes. A decision is made once and
// kept; the hot path reads a short sorted array that never changes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "route/envelope.h"
#include "route/rules.h"
#include "route/split.h"
#include "route/table.h"

namespace pw::route {

/// The question. Path indices in the answer refer to `available`.
struct Query {
  Case requested;
  std::vector<std::string> available;  ///< names of the paths that serve the pair, in order of preference
  std::vector<Unavailable> unavailable;
  std::optional<PairClass> costs_of = {};  ///< the pair whose costs replace those of `requested`

  [[nodiscard]] const PairClass& measured_pair() const { return costs_of ? *costs_of : requested.pair; }
};

/// The choice for sizes above the previous entry's `max_bytes`, up to and including this one's.
struct Choice {
  uint64_t max_bytes = 0;
  uint16_t path = 0;   ///< index in Query::available; meaningless for a split
  int16_t split = -1;  ///< index in Route::splits(), or -1
};

/// A split that is ready to use, with path indices instead of names.
struct ReadySplit {
  std::array<uint16_t, kMaxParts> path{}, share{};
  uint32_t parts = 0;
  uint64_t minimum_part = 0, align = 1;
  std::string name;  ///< for a trace: its paths and shares, in the order of the table

  /// Cuts a transfer; SplitPiece::part is an index into `path`. For a strided shape `slice_bytes` is the
  /// bytes of one index of its slowest dimension, and the cuts are between those; 0 for a contiguous shape.
  [[nodiscard]] SplitPieces divide(uint64_t bytes, uint64_t slice_bytes = 0) const noexcept {
    return route::divide({share.data(), parts}, minimum_part, slice_bytes ? slice_bytes : align, bytes);
  }
};

/// Why a range uses its choice.
enum class Why : uint8_t { cheapest, within_spread, rule, only_one, preference };

/// A candidate of a decision, with what explain() says about it.
struct Option {
  Candidate candidate;
  std::vector<SplitPart> parts;  ///< for a single path: one part that has all shares
};

/// One range of a decision, for explain().
struct Decision {
  Range range;
  Why why = Why::cheapest;
  std::string rule;             ///< for Why::rule: which rule
  std::string forbids;          ///< for the others: which rules excluded paths, like Allowance::forbids
  std::vector<size_t> allowed;  ///< the options that remain after the rules
};

/// The answer to one query. Immutable.
class Route {
 public:
  /// Walks a short array: no allocation, no lock.
  [[nodiscard]] const Choice& lookup(uint64_t bytes) const noexcept {
    const Choice* choice = choices_.data();
    while (bytes > choice->max_bytes) ++choice;  // the last one's max_bytes is UINT64_MAX
    return *choice;
  }
  [[nodiscard]] const ReadySplit& split(const Choice& choice) const noexcept {
    return splits_[static_cast<size_t>(choice.split)];
  }

  /// The cost of the choice for that size, in microseconds; infinite if it was not measured.
  [[nodiscard]] double cost(uint64_t bytes) const {
    const Choice& choice = lookup(bytes);
    const size_t option =
        choice.split < 0 ? choice.path : query_.available.size() + static_cast<size_t>(choice.split);
    return options_[option].candidate.at(bytes);
  }

  /// The path for that size if each path costs `extra(name)` microseconds more than was measured. If rules
  /// decide, or costs are not known, it is the usual choice. There must be no splits.
  template <typename Extra>
  [[nodiscard]] size_t path_with(uint64_t bytes, Extra&& extra) const {
    size_t path = lookup(bytes).path;
    for (const Decision& decision : decisions_) {
      const bool by_cost = decision.why == Why::cheapest || decision.why == Why::within_spread;
      if (!by_cost || bytes < decision.range.from || bytes >= decision.range.to) continue;
      const auto cost_of = [&](size_t option) {
        return options_[option].candidate.at(bytes) + extra(options_[option].candidate.name);
      };
      for (const size_t option : decision.allowed)
        if (cost_of(option) < cost_of(path)) path = option;
    }
    return path;
  }
  /// The cost of a path, by its name; infinite if it was not measured.
  [[nodiscard]] double cost_of(std::string_view path, uint64_t bytes) const {
    for (const Option& option : options_)
      if (option.candidate.name == path) return option.candidate.at(bytes);
    return std::numeric_limits<double>::infinity();
  }

  [[nodiscard]] std::span<const Choice> choices() const { return choices_; }
  [[nodiscard]] std::span<const ReadySplit> splits() const { return splits_; }
  [[nodiscard]] const Query& query() const { return query_; }
  [[nodiscard]] const std::vector<Option>& options() const { return options_; }
  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class Router;
  Query query_;
  std::vector<Choice> choices_;
  std::vector<ReadySplit> splits_;
  std::vector<Option> options_;
  std::vector<Decision> decisions_;
  std::vector<std::string> notes_;
};

/// Keeps a table, the user's rules and all decisions made from them. Several threads may use it at once.
class Router {
 public:
  /// Without a table the order of preference decides, and notes include `why_no_table` ("~/.config/... does
  /// not exist"). Where the table decides, notes include `table_note`. A table may name members of `families`
  /// that this context lacks.
  Router(std::optional<Table> table, Rules rules, bool strict, std::string why_no_table = "",
         std::string table_note = "", std::vector<PathFamily> families = {});

  /// Whether the table has a cost of that operation, of any shape, between such memories.
  [[nodiscard]] bool measured(Op op, const PairClass& pair) const;
  /// Returns that pair if it was measured; otherwise the first pair of the table that differs only in its
  /// link.
  [[nodiscard]] std::optional<PairClass> nearest_measured(Op op, const PairClass& pair) const;

  /// Throws Error(PW_UNSUPPORTED) with all reasons if no path is available; in strict mode
  /// Error(PW_BAD_TABLE) if a rule could not be followed.
  [[nodiscard]] std::shared_ptr<const Route> route(const Query& query) const;

  [[nodiscard]] const std::optional<Table>& table() const { return table_; }
  [[nodiscard]] const Rules& rules() const { return rules_; }

 private:
  [[nodiscard]] std::shared_ptr<const Route> make_route(const Query& query) const;
  void add_options(Route& route) const;

  std::optional<Table> table_;
  Rules rules_;
  bool strict_ = false;
  std::string why_no_table_, table_note_;
  std::vector<PathFamily> families_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const Route>> routes_;
};

}  // namespace pw::route
