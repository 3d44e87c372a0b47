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

/// The bit that ids of copies on GPUs have.
inline constexpr uint64_t kOnGpus = uint64_t{1} << 63;

/// The id of an array that is the same on all ranks that allocate it together.
struct CommonId {
  uint64_t id = 0;      ///< 0: arrays are not reached
  uint64_t nodes = 0;   ///< tells apart on which nodes it is, and which executed then
  uint64_t number = 0;  ///< among all that these ever allocated, from 1
  [[nodiscard]] uint64_t on_gpus() const { return id ^ kOnGpus; }
};

/// Collective over all ranks, before the first array is allocated; nothing unless arrays are reached.
void make_key_table();
/// This rank allocates no more arrays: none waits for them.
void close_key_table();
void free_key_table();

/// Others find the memory of an array from now on, if this rank is one of its nodes.
CommonId publish_array(const pwx_array& a, const peerway::Region& memory);

/// Others find the memory by its id from now on, or no longer. Nothing for 0.
void publish(uint64_t id, const peerway::Region& memory);
void withdraw(uint64_t id);

/// The memory of an array at a rank, once that has allocated it; null where it is freed, or never will be.
peerway::Remote* published(int rank, const CommonId& array);
/// The memory that a rank has published by an id; null where there is none now.
peerway::Remote* published(int rank, uint64_t id);
/// Forgets a key that may have been withdrawn since: the next call looks again.
void forget_published(int rank, uint64_t id);

}  // namespace pwx
