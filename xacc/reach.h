// How a rank reaches the arrays of ranks that do not take part: each keeps the keys of its arrays in memory
// that all others read. Only in programs with a gmove in or out.
#pragma once

#include <cstdint>
#include <vector>

#include "peerway/peerway.hpp"
#include "peerway/xacc/runtime.h"

namespace pwx {

/// Whether a source file of the program has a gmove in or out.
bool arrays_are_reached();

/// Collective over all ranks, before the first array is allocated; nothing unless arrays are reached.
void make_key_table();
void free_key_table();

/// Others find the memory of an array from now on, if this rank is one of its nodes. Gives a number that all
/// ranks which allocate the array together compute alike; 0 unless arrays are reached.
uint64_t publish_array(const pwx_array& a, const peerway::Region& memory);
/// The number of its copies on GPUs.
inline uint64_t id_on_gpus(uint64_t id) { return id ^ (uint64_t{1} << 63); }

/// Others find the memory by its number from now on, or no longer. Nothing for 0.
void publish(uint64_t id, const peerway::Region& memory);
void withdraw(uint64_t id);

/// The memory that a rank published by a number; null where there is none.
peerway::Remote* published(int rank, uint64_t id);
/// What was published may have been withdrawn since: look again.
void forget_published(int rank, uint64_t id);

}  // namespace pwx
