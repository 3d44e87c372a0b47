// Bottom-up piecewise least squares: every interval between neighbouring points starts as its own piece, and
// the two neighbours that a single line explains best are merged, again and again.
#include "route/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/format.h"
#include "base/status.h"

namespace pw::route {
namespace {

constexpr double kLeastTolerance =
    0.02;                       // finer agreement than 2 % between runs is not to be had on real machines
constexpr double kOutlier = 3;  // a single point may be this many tolerances off before a merge is refused
constexpr double kLeastNoise = 0.01, kMostNoise = 0.25;

/// A line through points[first..last].
struct Run {
  size_t first = 0, last = 0;
  double fixed = 0, per_byte = 0;
  double rms = 0;    // of the relative residuals
  double score = 0;  // residual over tolerance: 1 is just acceptable
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<Point> clean(std::span<const Point> points) {
  if (points.empty())
    throw Error(PW_INVALID_ARGUMENT, "peerway: a cost line needs at least one measured point");
  std::vector<Point> sorted(points.begin(), points.end());
  for (const Point& p : sorted)
    if (p.bytes == 0 || !std::isfinite(p.microseconds) || p.microseconds <= 0 || !(p.spread >= 0))
      throw Error(
          PW_INVALID_ARGUMENT,
          format("peerway: a measured point needs a size above 0 and a positive cost, not {} bytes, {} us, "
                 "spread {}",
                 p.bytes, p.microseconds, p.spread));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  std::vector<Point> out;
  for (size_t i = 0; i < sorted.size();) {
    std::vector<double> costs, spreads;
    const uint64_t bytes = sorted[i].bytes;
    for (; i < sorted.size() && sorted[i].bytes == bytes; ++i) {
      costs.push_back(sorted[i].microseconds);
      spreads.push_back(sorted[i].spread);
    }
    out.push_back({bytes, median(costs), median(spreads)});
  }
  return out;
}

Run line_through(std::span<const Point> points, size_t first, size_t last) {
  Run run{.first = first, .last = last};
  // Weights 1/y^2 make the error relative. Sizes are scaled to [0, 1] so that the sums keep their digits.
  const double scale = static_cast<double>(points[last].bytes);
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  for (size_t i = first; i <= last; ++i) {
    const double x = static_cast<double>(points[i].bytes) / scale, y = points[i].microseconds,
                 weight = 1 / (y * y);
    w += weight, wx += weight * x, wxx += weight * x * x, wy += weight * y, wxy += weight * x * y;
  }
  const double determinant = w * wxx - wx * wx;
  double slope = determinant > 0 ? (w * wxy - wx * wy) / determinant : 0;
  if (!(slope > 0)) slope = 0;  // more bytes never cost less: what looks so is noise
  run.per_byte = slope / scale;
  run.fixed = (wy - slope * wx) / w;

  double squares = 0, worst = 0, spreads = 0;
  for (size_t i = first; i <= last; ++i) {
    const Point& p = points[i];
    const double off =
        std::abs(run.fixed + run.per_byte * static_cast<double>(p.bytes) - p.microseconds) / p.microseconds;
    squares += off * off;
    spreads += p.spread * p.spread;
    worst = std::max(worst, off);
  }
  const double n = static_cast<double>(last - first + 1);
  run.rms = std::sqrt(squares / n);
  const double tolerance = std::max(kLeastTolerance, std::sqrt(spreads / n));
  run.score = std::max(run.rms / tolerance, worst / (kOutlier * tolerance));
  return run;
}

std::vector<Run> merge(std::span<const Point> points) {
  std::vector<Run> runs, joined;  // joined[i]: runs[i] and runs[i + 1] as one
  for (size_t i = 0; i + 1 < points.size(); ++i) runs.push_back(line_through(points, i, i + 1));
  for (size_t i = 0; i + 2 < points.size(); ++i) joined.push_back(line_through(points, i, i + 2));
  while (!joined.empty()) {
    const auto best = std::min_element(joined.begin(), joined.end(),
                                       [](const Run& a, const Run& b) { return a.score < b.score; });
    if (best->score > 1 && runs.size() <= kMaxSegments) break;
    const size_t i = static_cast<size_t>(best - joined.begin());
    runs[i] = *best;
    runs.erase(runs.begin() + static_cast<ptrdiff_t>(i) + 1);
    joined.erase(best);
    if (i < joined.size()) joined[i] = line_through(points, runs[i].first, runs[i + 1].last);
    if (i > 0) joined[i - 1] = line_through(points, runs[i - 1].first, runs[i].last);
  }
  return runs;
}

/// Six digits: what is kept in memory is exactly what a person reads in the table.
double readable(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Segment segment(std::span<const Point> points, const Run& run) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = run.first; i <= run.last; ++i) least = std::min(least, points[i].microseconds);
  const auto at = [&](size_t i) { return run.fixed + run.per_byte * static_cast<double>(points[i].bytes); };
  const double start = std::max(at(run.first), least / 2);  // a steep line may dip to 0 at its start
  return {points[run.first].bytes, readable(start), points[run.last].bytes,
          readable(std::max(start, at(run.last)))};
}

}  // namespace

Affine CostLine::piece(uint64_t bytes) const {
  if (segments.empty()) return {.fixed = std::numeric_limits<double>::infinity()};
  if (bytes <= segments.front().from)
    return {.fixed = segments.front().us_from, .until = segments.front().from};
  const auto found =
      std::find_if(segments.begin(), segments.end(), [&](const Segment& s) { return bytes <= s.to; });
  const Segment& s = found == segments.end() ? segments.back() : *found;
  const double span = static_cast<double>(s.to) - static_cast<double>(s.from);
  double slope = span > 0 ? (s.us_to - s.us_from) / span : 0;
  if (found != segments.end()) return {s.us_from - slope * static_cast<double>(s.from), slope, s.to};
  if (!(slope > 0)) slope = s.us_to / static_cast<double>(s.to);
  return {s.us_to - slope * static_cast<double>(s.to), slope};
}

CostLine fit(std::span<const Point> measured) {
  const std::vector<Point> points = clean(measured);
  CostLine line;
  std::vector<double> spreads;
  for (const Point& p : points) spreads.push_back(p.spread);
  double noise = median(spreads);
  if (points.size() == 1) {
    const double us = readable(points[0].microseconds);
    line.segments.push_back({points[0].bytes, us, points[0].bytes, us});
  } else {
    double squares = 0;
    for (const Run& run : merge(points)) {
      line.segments.push_back(segment(points, run));
      squares += run.rms * run.rms * static_cast<double>(run.last - run.first + 1);
    }
    noise = std::max(noise, std::sqrt(squares / static_cast<double>(points.size())));
  }
  line.noise = readable(std::clamp(noise, kLeastNoise, kMostNoise));
  return line;
}

}  // namespace pw::route
