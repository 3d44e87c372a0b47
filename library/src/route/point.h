// A measured point: the time one transfer of some size took. Everything the route layer knows comes from
// these.
#pragma once

#include <cstdint>

namespace pw::route {

struct Point {
  uint64_t bytes = 0;
  double microseconds = 0;  ///< median, from the start to completion at the target
  double spread = 0;        ///< half the interquartile range over the median; 0 when it is not known
  bool operator==(const Point&) const = default;
};

}  // namespace pw::route
