// The operators of reductions, and the sizes of element types. Pure functions.
#pragma once

#include <cstddef>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// The size of an element in bytes.
size_t size_of(pwx_type type);

/// The name of an operator or type in kernels (kernels/operators.cuh, kernels/complex.cuh); null if kernels
/// do not have it.
const char* kernel_name_of(pwx_op op);
const char* kernel_name_of(pwx_type type);

/// Computes `into[i] = earlier[i] op later[i]`; `into` may be one of the operands.
using Combine = void (*)(void* into, const void* earlier, const void* later, size_t count);

/// Throws Failure if elements of this type do not have the operator.
Combine combine_of(pwx_op op, pwx_type type);

/// Whether `later` replaces `earlier`, for first and last max and min.
using Replaces = bool (*)(const void* earlier, const void* later);
Replaces replaces_of(pwx_op op, pwx_type type);

}  // namespace pwx
