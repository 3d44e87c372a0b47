// Computes the shares of a split from measured costs, and cuts a transfer.
#include "route/split.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/format.h"

namespace pw::route {
namespace {

/// Returns whole shares that sum to kShares and are nearest to the weights (largest remainder). A weight
/// below one share gets none.
std::vector<uint16_t> whole_shares(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint16_t> shares(weights.size());
  std::vector<std::pair<double, size_t>> remainders;
  uint32_t given = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * kShares;
    shares[i] = static_cast<uint16_t>(std::min<double>(kShares, exact));
    given += shares[i];
    if (shares[i] > 0) remainders.emplace_back(shares[i] - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; given < kShares; i = (i + 1) % remainders.size(), ++given)
    ++shares[remainders[i].second];
  return shares;
}

/// Returns the time at which all used candidates finish a transfer of `bytes`, if its parts are cut so that
/// all finish at the same time: the level at which fixed_i + per_byte_i * share_i is equal for all.
double finish_time(std::span<const Affine> candidates, const std::vector<bool>& used, double bytes) {
  double amount = bytes, rate = 0;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (used[i]) {
      amount += candidates[i].fixed / candidates[i].per_byte;
      rate += 1 / candidates[i].per_byte;
    }
  return amount / rate;
}

std::set<std::string> paths_of(const Split& split) {
  std::set<std::string> paths;
  for (const SplitPart& part : split.parts) paths.insert(part.path);
  return paths;
}

}  // namespace

std::string name_of(const Split& split) {
  std::string name;
  for (const SplitPart& part : split.parts) name += (name.empty() ? "" : "+") + part.path;
  return name;
}

std::string describe(const Split& split) {
  std::string text;
  for (const SplitPart& part : split.parts)
    text += format("{}{} {:.0f} %", text.empty() ? "" : " + ", part.path, 100.0 * part.share / kShares);
  return text;
}

SplitPieces divide(std::span<const uint16_t> shares, uint64_t minimum_part, uint64_t align,
                   uint64_t bytes) noexcept {
  align = std::max<uint64_t>(1, align);
  const size_t parts = std::min(shares.size(), kMaxParts);
  // Cuts in units of `align`. The bytes that fill no whole unit go to the last piece, so that they displace
  // no piece after them.
  const uint64_t units = bytes / align;
  std::array<uint64_t, kMaxParts> size{};
  size_t largest = 0;
  uint64_t given = 0;
  for (size_t i = 0; i < parts; ++i) {
    if (shares[i] > shares[largest]) largest = i;
    size[i] = units / kShares * shares[i] + units % kShares * shares[i] / kShares;
    if (size[i] < minimum_part / align + (minimum_part % align != 0)) size[i] = 0;
    given += size[i];
  }
  size[largest] += units - given;

  SplitPieces out;
  uint64_t offset = 0;
  for (size_t i = 0; i < parts; ++i) {
    if (size[i] == 0) continue;
    out.piece[out.count++] = {static_cast<uint32_t>(i), offset, size[i] * align};
    offset += size[i] * align;
  }
  if (out.count == 0) out.piece[out.count++] = {static_cast<uint32_t>(largest), 0, 0};
  out.piece[out.count - 1].bytes += bytes - offset;
  return out;
}

std::optional<Split> propose(std::span<const SplitCandidate> candidates, uint64_t bytes) {
  std::vector<Affine> cost;
  std::vector<bool> used;
  for (const SplitCandidate& candidate : candidates) {
    cost.push_back(candidate.line.piece(bytes));
    cost.back().fixed = std::max(0.0, cost.back().fixed);
    used.push_back(candidate.line.measured() && cost.back().per_byte > 0);
  }
  std::vector<double> weights(candidates.size());
  for (bool dropped = true; dropped;) {
    dropped = false;
    const double time = finish_time(cost, used, static_cast<double>(bytes));
    for (size_t i = 0; i < candidates.size(); ++i) {
      weights[i] = used[i] ? (time - cost[i].fixed) / cost[i].per_byte : 0;
      if (used[i] && weights[i] * kShares < static_cast<double>(bytes)) {
        used[i] = false;
        dropped = true;
      }
    }
  }
  // At most the kMaxParts largest become parts.
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  order.resize(std::min(order.size(), kMaxParts));
  std::erase_if(order, [&](size_t i) { return !(weights[i] > 0); });
  if (order.size() < 2) return std::nullopt;

  std::vector<double> kept;
  for (size_t i : order) kept.push_back(weights[i]);
  const std::vector<uint16_t> shares = whole_shares(kept);
  Split split;
  for (size_t i = 0; i < order.size(); ++i)
    if (shares[i] > 0) split.parts.push_back({candidates[order[i]].path, shares[i]});
  if (split.parts.size() < 2) return std::nullopt;
  return split;
}

std::vector<size_t> worth_keeping(std::span<const Trial> trials, std::span<const SplitCandidate> candidates) {
  std::map<std::set<std::string>, std::pair<double, size_t>>
      best;  // paths -> cost per byte at the largest size
  for (size_t t = 0; t < trials.size(); ++t) {
    if (trials[t].points.empty() || trials[t].split.parts.size() < 2) continue;
    const CostLine line(trials[t].points);
    const bool wins = std::ranges::any_of(line.points(), [&](const Point& point) {
      return std::ranges::all_of(candidates, [&](const SplitCandidate& candidate) {
        return clearly_below(point.microseconds, line.spread(point.bytes), candidate.line.at(point.bytes),
                             candidate.line.spread(point.bytes));
      });
    });
    if (!wins) continue;
    const Point& largest = line.points().back();
    const std::pair<double, size_t> entry = {largest.microseconds / static_cast<double>(largest.bytes), t};
    const auto [place, added] = best.try_emplace(paths_of(trials[t].split), entry);
    if (!added) place->second = std::min(place->second, entry);
  }
  std::vector<size_t> kept;
  for (const auto& [paths, entry] : best) kept.push_back(entry.second);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace pw::route
