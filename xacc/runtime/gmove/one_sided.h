// gmove in and out: the executing nodes read or write the memory of the others, which need not call.
#pragma once

#include "xacc/runtime/gmove/sides.h"

namespace pwx {

/// gmove in: each executing node that owns elements of the left side gets them. `from_gpus`: the others'
/// copies on their GPUs are meant.
void get_from_owners(const Sides& sides, bool from_gpus);

/// gmove out: each executing node that owns elements of the right side puts them where they belong. Complete
/// at both ends when it returns.
void put_to_owners(const Sides& sides, bool to_gpus);

}  // namespace pwx
