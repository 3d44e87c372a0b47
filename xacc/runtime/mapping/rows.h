// The rows of a section in memory: of a C array, or of this node's part of a distributed array. Pure
// functions.
#pragma once

#include <cstddef>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Contiguous bytes; the offset is from the start of the memory.
struct Row {
  size_t offset;
  size_t bytes;
  bool operator==(const Row&) const = default;
};

/// The rows in the order of memory; none if the section is empty, or if no part of it is here. Throws Failure
/// if a subscript is outside the array and its shadow.
std::vector<Row> rows_of(const pwx_section& section, const char* name);

}  // namespace pwx
