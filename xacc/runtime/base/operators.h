// The operators of reductions, and the sizes of element types. Pure.
#pragma once

#include <cstddef>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Bytes of an element.
size_t size_of(pwx_type type);

/// The names of the two in kernels (kernels/operators.cuh, kernels/complex.cuh); null where kernels do not
/// have them.
const char* kernel_name_of(pwx_op op);
const char* kernel_name_of(pwx_type type);

/// `into[i] = earlier[i] op later[i]`; `into` may be one of them.
using Combine = void (*)(void* into, const void* earlier, const void* later, size_t count);

/// Throws Failure where elements of this type have no such operator.
Combine combine_of(pwx_op op, pwx_type type);

/// Whether `later` takes the place of `earlier` for first and last max and min.
using Replaces = bool (*)(const void* earlier, const void* later);
Replaces replaces_of(pwx_op op, pwx_type type);

}  // namespace pwx
