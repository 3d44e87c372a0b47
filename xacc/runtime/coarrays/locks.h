// lock and unlock of XcalableMP.
#pragma once

namespace pwx {

/// Call it before the context ends.
void free_locks();

}  // namespace pwx
