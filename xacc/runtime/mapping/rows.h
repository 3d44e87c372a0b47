// The rows of a section in memory: of an array of C, or of what this node has of a distributed one. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "peerway/xacc/runtime.h"

namespace pwx {

/// Contiguous bytes, from where the memory begins.
struct Row {
  size_t offset;
  size_t bytes;
  bool operator==(const Row&) const = default;
};

/// In the order of memory; none where the section is empty, or nothing of it lies here. Throws Failure where
/// a subscript is outside of the array and its shadow.
std::vector<Row> rows_of(const pwx_section& section, const char* name);

}  // namespace pwx
