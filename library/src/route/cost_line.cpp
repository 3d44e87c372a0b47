#include "route/cost_line.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/status.h"

namespace pw::route {

CostLine::CostLine(std::vector<Point> points) : points_(std::move(points)) {
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point& p = points_[i];
    if (p.bytes == 0 || !std::isfinite(p.microseconds) || p.microseconds <= 0 || !(p.spread >= 0))
      throw Error(PW_INVALID_ARGUMENT,
                  format("a measured point needs a size above 0 and a positive cost, not {} bytes, "
                         "{} us, spread {}",
                         p.bytes, p.microseconds, p.spread));
    if (i > 0 && p.bytes <= points_[i - 1].bytes)
      throw Error(PW_INVALID_ARGUMENT,
                  format("measured sizes must grow; {} bytes come after {}", p.bytes, points_[i - 1].bytes));
  }
}

Affine CostLine::piece(uint64_t bytes) const {
  if (points_.empty()) return {.fixed = std::numeric_limits<double>::infinity()};
  const Point& first = points_.front();
  if (bytes <= first.bytes) return {.fixed = first.microseconds, .until = first.bytes};
  const auto above =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return bytes <= point.bytes; });
  const bool beyond = above == points_.end();
  const Point& high = beyond ? points_.back() : *above;
  const auto size = static_cast<double>(high.bytes);
  double slope = 0;
  if (points_.size() > 1) {
    const Point& low = *(&high - 1);
    slope = (high.microseconds - low.microseconds) / (size - static_cast<double>(low.bytes));
  }
  if (beyond && !(slope > 0)) slope = high.microseconds / size;
  return {high.microseconds - slope * size, slope, beyond ? kEnd - 1 : high.bytes};
}

double CostLine::spread(uint64_t bytes) const {
  double worst = 0;
  const auto above =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return bytes <= point.bytes; });
  if (above != points_.end()) worst = above->spread;
  const bool between = above == points_.end() || above->bytes != bytes;
  if (between && above != points_.begin()) worst = std::max(worst, (above - 1)->spread);
  return std::clamp(worst, kLeastSpread, kMostSpread);
}

}  // namespace pw::route
