// Decides which halos a reflect directive needs, without those that are up to date.
#pragma once

#include "xacc/runtime/reflect/plans.h"

namespace pwx {

/// The parts of a directive whose halos are not up to date, or with `all` every part. `widths` are those of
/// all arrays, or `each` those of each one; null means the whole shadow.
ReflectRequest request_of(int count, pwx_array* const* arrays, const pwx_width* widths,
                          const pwx_width* const* each, int flags, bool all = false);

}  // namespace pwx
