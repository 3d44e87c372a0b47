// Collective operations of a set of ranks, by messages.
#pragma once

#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/program/program.h"

namespace pwx {

// Ranks outside the set return at once.
void barrier(Program& program, const Set& set);
/// `root` is its place in the set.
void broadcast(Program& program, const Set& set, int root, void* data, size_t bytes);
/// All ranks get the same bits.
void reduce(Program& program, const Set& set, Combine combine, void* values, size_t count,
            size_t element_bytes);

/// Whether all ranks of the set give the same number, which is not 0.
bool agree(Program& program, const Set& set, long number);

/// The place of `from` in the set; NULL is its first rank. Throws Failure if it is not in the set.
int root_of(const Set& set, const pwx_ref* from);

}  // namespace pwx
