// The collectives that go through the hub, as messages carry them and errors name them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pw {

enum class Collective : uint8_t {
  barrier = 1,
  all_gather,  ///< every rank gives the same number of bytes
  parts,       ///< an all_gather in which each rank gives any number of bytes
  context,     ///< the exchange of ranks that make a context: lengths differ
};

/// Whether ranks may give different numbers of bytes.
inline bool lengths_differ(Collective kind) { return kind >= Collective::parts; }

/// As the caller knows it: "barrier", "all_gather", "making a context".
const char* name_of(Collective kind);
/// With its bytes: "all_gather of 8 bytes".
std::string call_of(Collective kind, size_t bytes);

}  // namespace pw
