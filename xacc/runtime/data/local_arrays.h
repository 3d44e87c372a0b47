// Arrays of functions: their memory is kept when the function returns, and its next call uses it again.
#pragma once

namespace pwx {

/// Call it before the context ends.
void free_local_arrays();

}  // namespace pwx
