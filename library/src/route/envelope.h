// The lower envelope of cost lines: for each size the candidate that costs least, as a few ranges.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "route/cost_line.h"

namespace pw::route {

/// One way to move the bytes that can be chosen: a path, or a split over several.
struct Candidate {
  std::string name;
  CostLine line;
  uint64_t from = 1;  ///< not a candidate below this size (a split counts only where it was measured)

  [[nodiscard]] Affine piece(uint64_t bytes) const;
  [[nodiscard]] double at(uint64_t bytes) const { return piece(bytes).at(bytes); }
};

/// Sizes [from, to) go by candidate `choice`.
struct Range {
  uint64_t from = 1;
  uint64_t to = kEnd;
  size_t choice = 0;
  bool held = false;  ///< somewhere in it another candidate is cheaper, by no more than the spread
};

inline constexpr size_t kMaxRanges = 24;

/// Sorted ranges without gaps over `sizes`. Among equal costs the candidate that comes first in `allowed`
/// wins. A range is kept only when it wins against its neighbour by more than the spread of the two somewhere
/// in it, so that nowhere another candidate is clearly_below() the choice, unless more than kMaxRanges would
/// be left; then the ranges that gain least go too. Throws Error(PW_INVALID_ARGUMENT) when nothing is allowed
/// or `sizes` is empty.
std::vector<Range> lower_envelope(std::span<const Candidate> candidates, std::span<const size_t> allowed,
                                  SizeRange sizes = {});

/// The cheapest measured candidate of `allowed` other than `choice` at one size; `choice` itself when there
/// is none.
size_t runner_up(std::span<const Candidate> candidates, std::span<const size_t> allowed, size_t choice,
                 uint64_t bytes);

}  // namespace pw::route
