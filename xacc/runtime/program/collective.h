// Collective operations of a set of ranks, by messages.
#pragma once

#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/program/program.h"

namespace pwx {

// A rank that is not in the set returns at once.
void barrier(Program& program, const Set& set);
/// `root`: its place in the set.
void broadcast(Program& program, const Set& set, int root, void* data, size_t bytes);
/// All get the same bits.
void reduce(Program& program, const Set& set, Combine combine, void* values, size_t count,
            size_t element_bytes);

/// Where `from` is in the set; NULL is its first. Throws Failure where it is none of them.
int root_of(const Set& set, const pwx_ref* from);

}  // namespace pwx
