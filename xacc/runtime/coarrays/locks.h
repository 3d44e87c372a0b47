// lock and unlock of XcalableMP.
#pragma once

namespace pwx {

/// Before the context ends.
void free_locks();

}  // namespace pwx
