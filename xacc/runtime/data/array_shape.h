// The shape of a distributed array: what a declaration describes, and where it puts this rank's part.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "xacc/runtime/mapping/mapping.h"

namespace pwx {

/// A declaration, or the parameter of a function.
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

/// Fills in what the declaration says. Throws Failure where the array cannot be like that.
void describe(pwx_array& a, const ArrayDescription& wanted);

/// Fills in where this rank's part lies. Gives the bytes of its memory.
uint64_t place_all(pwx_array& a);

/// How an array differs from a declaration; empty where it does not.
std::string difference(const pwx_array& a, const ArrayDescription& wanted);

/// Whether this rank's parts of both lie alike in their memory.
bool same_places(const pwx_array& a, const pwx_array& b);

/// The dimensions of a node's memory.
std::array<Placed, PWX_MAX_DIMS> placed_at(const pwx_array& a, int number);
Strides strides_at(const pwx_array& a, const std::array<Placed, PWX_MAX_DIMS>& placed);

}  // namespace pwx
