// A measured point: the time that one transfer of some size took. Everything that the route layer knows is
// derived from these.
#pragma once

#include <cstdint>

namespace pw::route {

struct Point {
  uint64_t bytes = 0;
  double microseconds = 0;  ///< median, from the start to completion at the target
  double spread = 0;        ///< half the interquartile range divided by the median; 0 if unknown
  bool operator==(const Point&) const = default;
};

}  // namespace pw::route
