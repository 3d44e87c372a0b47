// The cost line of one path in one case: straight pieces through the measured points, few enough to read and
// to compare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "route/point.h"
#include "route/size_text.h"

namespace pw::route {

/// One straight piece, given by the cost at both ends. Neighbours share a size; it belongs to the lower
/// piece.
struct Segment {
  uint64_t from = 0;
  double us_from = 0;
  uint64_t to = 0;
  double us_to = 0;
  bool operator==(const Segment&) const = default;
};

/// cost = fixed + per_byte * bytes, for sizes up to and including `until`.
struct Affine {
  double fixed = 0;
  double per_byte = 0;
  uint64_t until = kEnd - 1;
  [[nodiscard]] double at(uint64_t bytes) const { return fixed + per_byte * static_cast<double>(bytes); }
};

/// Sizes below the first piece cost what its start costs; sizes above the last one grow by its slope, or in
/// proportion to the size where it has none (a path measured only at small sizes must not look free at large
/// ones). A line with no segments is a path that was not measured: its cost is infinite.
struct CostLine {
  std::vector<Segment> segments;
  double noise = 0;  ///< relative; differences below it mean nothing

  [[nodiscard]] bool measured() const { return !segments.empty(); }
  [[nodiscard]] Affine piece(uint64_t bytes) const;
  [[nodiscard]] double at(uint64_t bytes) const { return piece(bytes).at(bytes); }  ///< microseconds
  bool operator==(const CostLine&) const = default;
};

inline constexpr size_t kMaxSegments = 8;

/// Least squares in relative error, after merging neighbouring intervals for as long as the residual stays
/// within the measured spread. Points may come in any order; several of one size count as their median.
/// Throws Error(PW_INVALID_ARGUMENT) when there is no point, or one without a positive finite cost.
CostLine fit(std::span<const Point> points);

}  // namespace pw::route
