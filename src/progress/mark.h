// A mark: a point in what one path was given towards one rank. Everything asynchronous ends in marks: a flush
// waits until some are reached, a plan is complete when its own are.
#pragma once

#include <cstdint>

namespace pw {

/// Counts operations, or what stands for them; 0: there was nothing.
using Mark = uint64_t;

}  // namespace pw
