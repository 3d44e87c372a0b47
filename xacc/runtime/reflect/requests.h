// Which halos a reflect directive needs, and which of them are up to date.
#pragma once

#include "xacc/runtime/reflect/plans.h"

namespace pwx {

/// The parts of a directive that nothing has brought yet; `all` of it. `widths`: of all arrays, or `each`: of
/// each; null is the whole shadow.
ReflectRequest request_of(int count, pwx_array* const* arrays, const pwx_width* widths,
                          const pwx_width* const* each, int flags, bool all = false);

}  // namespace pwx
