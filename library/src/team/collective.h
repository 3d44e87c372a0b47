// The kinds of collectives, as messages carry them and errors name them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace pw {

enum class Collective : uint8_t {
  barrier = 1,
  all_gather,    ///< every rank gives the same number of bytes
  parts,         ///< an all_gather in which each rank gives any number of bytes
  context,       ///< the exchange of ranks that make a context: lengths differ
  plan,          ///< the prepare of a plan, in which each rank talks to its partners alone, as in all below
  halo,          ///< the same plan with the arrays that it refreshes
  halo_extents,  ///< what Python's ranks tell one another before that
  plan_among,    ///< the prepare of a plan by some ranks
};

/// Whether the bootstrap server carries the data and answers all ranks once it has that of all. In the
/// other kinds each rank talks to its partners.
inline bool through_server(Collective kind) { return kind <= Collective::context; }
/// Whether ranks may give different numbers of bytes.
inline bool lengths_differ(Collective kind) {
  return kind == Collective::parts || kind == Collective::context;
}

/// One call, as far as it must be the same at all ranks.
struct CollectiveCall {
  Collective kind = Collective::barrier;
  size_t bytes = 0;  ///< that this rank gives; 0 where it talks to its partners alone
};

/// The name that callers know: "barrier", "all_gather", "creation of a context".
const char* name_of(Collective kind);
/// With its bytes: "all_gather of 8 bytes".
std::string name_of(const CollectiveCall& call);
/// The action that a rank could not do if it fails: "prepare its plan".
const char* action_of(Collective kind);

/// Two ranks are in different collectives. The same text whichever rank notices.
Error different_calls(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace pw
