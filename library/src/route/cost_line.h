// The cost of one path in one case at every size: linear between the measured medians, so that at each
// measured size it is exactly what was measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "route/point.h"
#include "route/size_text.h"

namespace pw::route {

/// cost = fixed + per_byte * bytes, for sizes up to and including `until`.
struct Affine {
  double fixed = 0;
  double per_byte = 0;
  uint64_t until = kEnd - 1;
  [[nodiscard]] double at(uint64_t bytes) const { return fixed + per_byte * static_cast<double>(bytes); }
};

/// Sizes below the first point cost as much as the first point. Above the last point the cost grows with the
/// last slope, or in proportion to the size if there is no slope (a path measured only at small sizes must
/// not seem free at large ones). A line without points is a path that was not measured: its cost is infinite.
class CostLine {
 public:
  CostLine() = default;
  /// Throws Error(PW_INVALID_ARGUMENT) if sizes do not grow or a cost is not positive and finite.
  explicit CostLine(std::vector<Point> points);

  [[nodiscard]] bool measured() const { return !points_.empty(); }
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }
  [[nodiscard]] Affine piece(uint64_t bytes) const;
  [[nodiscard]] double at(uint64_t bytes) const { return piece(bytes).at(bytes); }  ///< microseconds

  /// Returns the relative spread: the larger of those of the two neighbouring measured sizes, between
  /// kLeastSpread and kMostSpread. Differences smaller than it mean nothing.
  [[nodiscard]] double spread(uint64_t bytes) const;
  bool operator==(const CostLine&) const = default;

 private:
  std::vector<Point> points_;
};

/// Two runs on a real machine never agree better than this.
inline constexpr double kLeastSpread = 0.01;
/// A larger spread shows that the measurement failed; it must not make every path as good as any other.
inline constexpr double kMostSpread = 0.25;

/// Whether one cost is below another by more than the spreads of the two, so that their ranges do not touch.
inline bool clearly_below(double cost, double spread, double other, double other_spread) {
  return cost * (1 + spread) < other * (1 - other_spread);
}

}  // namespace pw::route
