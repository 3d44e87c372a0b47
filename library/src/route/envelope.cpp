// Computes the exact lower envelope of straight pieces, then merges ranges that are only due to the spread of
// the measurements.
#include "route/envelope.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"

namespace pw::route {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The least cost at one end of an interval in which all lines are straight and do not cross. Between two
/// neighbouring samples the ratio of two lines is monotonic, so its extremes are at samples.
struct Sample {
  uint64_t bytes;
  double least;
  size_t cheapest;  ///< the candidate with that cost
};

struct Exact {
  std::vector<Range> ranges;
  std::vector<Sample> samples;
};

void append(std::vector<Range>& ranges, const Range& range) {
  if (!ranges.empty() && ranges.back().choice == range.choice) {
    ranges.back().to = range.to;
    ranges.back().within_spread |= range.within_spread;
  } else {
    ranges.push_back(range);
  }
}

/// Returns the sizes in [first, last] after which the order of two pieces may change, and `last`.
std::vector<uint64_t> crossings(std::span<const Affine> pieces, uint64_t first, uint64_t last) {
  std::vector<uint64_t> cuts = {last};
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t j = i + 1; j < pieces.size(); ++j) {
      const double x = (pieces[j].fixed - pieces[i].fixed) / (pieces[i].per_byte - pieces[j].per_byte);
      if (x >= static_cast<double>(first) && x < static_cast<double>(last)) {
        const auto cut = static_cast<uint64_t>(x);
        if (cut >= first && cut < last) cuts.push_back(cut);
      }
    }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

size_t cheapest(std::span<const Affine> pieces, uint64_t bytes) {
  size_t best = 0;
  for (size_t i = 1; i < pieces.size(); ++i)
    if (pieces[i].at(bytes) < pieces[best].at(bytes)) best = i;
  return best;
}

Exact exact_envelope(std::span<const Candidate> candidates, std::span<const size_t> allowed,
                     SizeRange sizes) {
  Exact out;
  std::vector<Affine> pieces;
  for (uint64_t first = sizes.from; first < sizes.to;) {
    uint64_t last = sizes.to - 1;
    pieces.clear();
    for (size_t c : allowed) {
      pieces.push_back(candidates[c].piece(first));
      last = std::min(last, pieces.back().until);
    }
    uint64_t start = first;
    for (uint64_t end : crossings(pieces, first, last)) {
      const size_t best = cheapest(pieces, start + (end - start) / 2);
      append(out.ranges, {start, end + 1, allowed[best]});
      out.samples.push_back({start, pieces[best].at(start), allowed[best]});
      out.samples.push_back({end, pieces[best].at(end), allowed[best]});
      start = end + 1;
    }
    first = last + 1;
  }
  return out;
}

/// The price of using one candidate in a whole range.
struct Price {
  double regret = 0;     ///< the largest relative excess over the least cost
  bool harmless = true;  ///< whether the excess is within the spread everywhere
};

Price price(std::span<const Sample> samples, const Range& range, std::span<const Candidate> candidates,
            size_t choice) {
  Price worst;
  auto sample = std::lower_bound(samples.begin(), samples.end(), range.from,
                                 [](const Sample& s, uint64_t bytes) { return s.bytes < bytes; });
  for (; sample != samples.end() && sample->bytes < range.to; ++sample) {
    const double cost = candidates[choice].at(sample->bytes);
    if (!(cost > sample->least)) continue;
    worst.regret = std::max(worst.regret, cost / sample->least - 1);
    const auto spread = [&](size_t c) { return candidates[c].line.spread(sample->bytes); };
    worst.harmless &=
        std::isfinite(cost) && !clearly_below(sample->least, spread(sample->cheapest), cost, spread(choice));
  }
  return worst;
}

/// Gives the range number `index` to the choice of its neighbour.
struct Merge {
  size_t index = 0;
  size_t choice = 0;
  bool harmless = false;  // the excess is within the spread
  double regret = kInfinity;
  double width = kInfinity;  // in octaves
};

/// Prefers harmless merges, and the narrowest among them; otherwise the merge that costs least.
bool better(const Merge& a, const Merge& b) {
  if (a.harmless != b.harmless) return a.harmless;
  if (a.harmless) return a.width != b.width ? a.width < b.width : a.regret < b.regret;
  return a.regret < b.regret;
}

Merge best_merge(std::span<const Candidate> candidates, const Exact& exact) {
  Merge best;
  const std::vector<Range>& ranges = exact.ranges;
  for (size_t i = 0; i < ranges.size(); ++i)
    for (size_t j : {i - 1, i + 1}) {
      if (j >= ranges.size()) continue;  // i - 1 of the first range wraps around to a large number
      const Price paid = price(exact.samples, ranges[i], candidates, ranges[j].choice);
      Merge merge{.index = i, .choice = ranges[j].choice, .harmless = paid.harmless, .regret = paid.regret};
      merge.width = std::log2(static_cast<double>(ranges[i].to) /
                              static_cast<double>(std::max<uint64_t>(1, ranges[i].from)));
      if (better(merge, best)) best = merge;
    }
  return best;
}

}  // namespace

Affine Candidate::piece(uint64_t bytes) const {
  if (bytes < from) return {.fixed = kInfinity, .until = from - 1};
  return line.piece(bytes);
}

std::vector<Range> lower_envelope(std::span<const Candidate> candidates, std::span<const size_t> allowed,
                                  SizeRange sizes) {
  if (allowed.empty() || sizes.from >= sizes.to)
    throw Error(PW_INVALID_ARGUMENT, "an envelope needs at least one candidate and one size");
  Exact exact = exact_envelope(candidates, allowed, sizes);
  while (exact.ranges.size() > 1) {
    const Merge merge = best_merge(candidates, exact);
    if (!merge.harmless && exact.ranges.size() <= kMaxRanges) break;
    exact.ranges[merge.index].choice = merge.choice;
    exact.ranges[merge.index].within_spread |= merge.regret > 0;
    std::vector<Range> merged;
    for (const Range& range : exact.ranges) append(merged, range);
    exact.ranges = std::move(merged);
  }
  return exact.ranges;
}

size_t runner_up(std::span<const Candidate> candidates, std::span<const size_t> allowed, size_t choice,
                 uint64_t bytes) {
  size_t best = choice;
  double least = kInfinity;
  for (size_t c : allowed)
    if (c != choice && candidates[c].at(bytes) < least) {
      least = candidates[c].at(bytes);
      best = c;
    }
  return best;
}

}  // namespace pw::route
