// The kinds of collective calls, as messages encode them and errors name them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace pw {

enum class CallKind : uint8_t {
  barrier = 1,
  all_gather,        ///< every rank gives the same number of bytes
  parts,             ///< an all_gather in which each rank gives any number of bytes
  context,           ///< the collective call of ranks that make a context: lengths differ
  plan,              ///< the prepare of a plan; here and below each rank talks only to its partners
  halo,              ///< the same for a plan that refreshes the halos of arrays
  halo_extents,      ///< what ranks of the Python module exchange before that
  collective,        ///< the creation of a plan that carries out a collective
  plan_among,        ///< the prepare of a plan by some of the ranks
  collective_among,  ///< the creation of a plan that carries out a collective of some of the ranks
};

/// Whether the bootstrap server carries the data, and answers all ranks once it has the data of all. In the
/// other kinds each rank talks to its partners.
inline bool through_server(CallKind kind) { return kind <= CallKind::context; }
/// Whether ranks may give different numbers of bytes.
inline bool lengths_differ(CallKind kind) { return kind == CallKind::parts || kind == CallKind::context; }

/// The kind, which must be the same at all ranks, and the bytes that this rank gives, which must be the same,
/// too, unless lengths_differ().
struct CollectiveCall {
  CallKind kind = CallKind::barrier;
  size_t bytes = 0;  ///< bytes that this rank gives; 0 if it talks only to its partners
};

/// Returns the caller's name for it: "barrier", "all_gather", "creation of a context".
const char* name_of(CallKind kind);
/// Adds the bytes: "all_gather of 8 bytes".
std::string name_of(const CollectiveCall& call);
/// Returns what a rank could not do if it fails: "prepare its plan".
const char* action_of(CallKind kind);

/// The error if two ranks are in different collective calls. The text is the same whichever rank notices.
Error different_calls(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace pw
