// Lets a rank reach the arrays of ranks that do not take part: each rank keeps the keys of its arrays in
// memory that all others can read. Used only in programs with a gmove in or out.
#pragma once

#include <cstdint>
#include <vector>

#include "peerway/peerway.hpp"
#include "peerway/xacc/runtime.h"

namespace pwx {

/// Whether a source file of the program has a gmove in or out.
bool arrays_are_reached();

/// The bit that is set in the ids of copies on GPUs.
inline constexpr uint64_t kOnGpus = uint64_t{1} << 63;

/// The id of an array that is the same on all ranks that allocate it together.
struct CommonId {
  uint64_t id = 0;      ///< 0: arrays are not reached
  uint64_t nodes = 0;   ///< a hash of the array's nodes and of the nodes that allocated it
  uint64_t number = 0;  ///< the array's number among all that these ever allocated, from 1
  [[nodiscard]] uint64_t on_gpus() const { return id ^ kOnGpus; }
};

/// Makes the table. Collective over all ranks, before the first array is allocated; does nothing unless
/// arrays are reached.
void make_key_table();
/// Says that this rank allocates no more arrays, so that no rank waits for one.
void close_key_table();
void free_key_table();

/// Publishes the memory of an array, if this rank is one of its nodes.
CommonId publish_array(const pwx_array& a, const peerway::Region& memory);

/// Lets others find memory by its id, or no longer. Does nothing for id 0.
void publish(uint64_t id, const peerway::Region& memory);
void withdraw(uint64_t id);

/// The memory of an array at a rank. Waits until that rank has allocated it; null if it is freed, or never
/// will be allocated.
peerway::Remote* published(int rank, const CommonId& array);
/// The memory that a rank has published with an id; null if there is none now.
peerway::Remote* published(int rank, uint64_t id);
/// Forgets a key that may have been withdrawn: the next call fetches it again.
void forget_published(int rank, uint64_t id);

}  // namespace pwx
