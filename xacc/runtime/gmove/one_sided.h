// gmove in and out: the executing nodes read or write the memory of other nodes, which need not execute it.
#pragma once

#include "xacc/runtime/gmove/assignment.h"

namespace pwx {

/// gmove in: each executing node gets the elements that it owns of the left side. `from_gpus` reads the
/// copies on the GPUs of the other nodes.
void get_from_owners(const Assignment& assignment, bool from_gpus);

/// gmove out: each executing node puts the elements that it owns of the right side to their owners.
/// Everything is complete at both ends on return.
void put_to_owners(const Assignment& assignment, bool to_gpus);

}  // namespace pwx
