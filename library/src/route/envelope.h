// The lower envelope of cost lines: the cheapest candidate for each size, as a few ranges.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "route/cost_line.h"

namespace pw::route {

/// A candidate that can be chosen to move the bytes: a path, or a split over several paths.
struct Candidate {
  std::string name;
  CostLine line;
  uint64_t from = 1;  ///< cannot be chosen below this size (a split can be chosen only at sizes at which it
                      ///< was measured)

  [[nodiscard]] Affine piece(uint64_t bytes) const;
  [[nodiscard]] double at(uint64_t bytes) const { return piece(bytes).at(bytes); }
};

/// Sizes [from, to) use candidate number `choice`.
struct Range {
  uint64_t from = 1;
  uint64_t to = kEnd;
  size_t choice = 0;
  bool within_spread =
      false;  ///< somewhere in the range another candidate is cheaper, by no more than the spread
};

inline constexpr size_t kMaxRanges = 24;

/// Returns sorted ranges without gaps over `sizes`. Among equal costs the candidate that comes first in
/// `allowed` wins. A range is kept only if it beats its neighbour somewhere by more than the spread of the
/// two, so that no other candidate is anywhere clearly_below() the choice. If more than kMaxRanges would be
/// left, the ranges that gain least are merged, too. Throws Error(PW_INVALID_ARGUMENT) if `allowed` or
/// `sizes` is empty.
std::vector<Range> lower_envelope(std::span<const Candidate> candidates, std::span<const size_t> allowed,
                                  SizeRange sizes = {});

/// Returns the cheapest measured candidate of `allowed` other than `choice` at one size; `choice` itself if
/// there is none.
size_t runner_up(std::span<const Candidate> candidates, std::span<const size_t> allowed, size_t choice,
                 uint64_t bytes);

}  // namespace pw::route
