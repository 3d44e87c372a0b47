// The shape of a distributed array: what a declaration describes, and the resulting part of this rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "xacc/runtime/mapping/mapping.h"

namespace pwx {

/// What a declaration, or a function's parameter, says of an array.
struct ArrayDescription {
  const char* name;
  size_t element_bytes;
  int ndims;
  const long* sizes;  ///< null: not known yet
  const pwx_template* t;
  const int* template_dim;
  const long* offset;
  const long* shadow_lo;
  const long* shadow_hi;
};

/// Fills in what the declaration says. Throws Failure if such an array is not possible.
void describe(pwx_array& a, const ArrayDescription& wanted);

/// Fills in the extents of this rank's part. Returns the size of its memory in bytes.
uint64_t place_all(pwx_array& a);

/// How an array differs from a declaration; empty if it does not.
std::string difference(const pwx_array& a, const ArrayDescription& wanted);

/// Whether this rank's parts of both arrays have the same layout in memory.
bool same_places(const pwx_array& a, const pwx_array& b);

/// The layout of the memory of the node with this number among the array's nodes, in each dimension.
std::array<Placed, PWX_MAX_DIMS> placed_at(const pwx_array& a, int number);
Strides strides_at(const pwx_array& a, const std::array<Placed, PWX_MAX_DIMS>& placed);

}  // namespace pwx
