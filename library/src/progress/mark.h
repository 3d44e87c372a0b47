// A mark: a point in the sequence of operations that one path was given towards one rank. Everything
// asynchronous ends in marks: a flush waits until its marks are reached, and a plan is complete when its own
// marks are.
#pragma once

#include <cstdint>

namespace pw {

/// Counts operations, or what represents them; 0: there was none.
using Mark = uint64_t;

}  // namespace pw
