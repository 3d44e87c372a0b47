// The NIC's options, the text after '?' in PEERWAY_NIC: a torus file, or `file=...,node=...,counters=...`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pw::torus {

struct Options {
  std::string file;              ///< empty: a ring of 8 nodes on this host
  std::optional<uint32_t> node;  ///< empty: derived from the rank that a launcher gave
  std::string counters;          ///< file to which the counters are appended at close; empty: none
};

/// Throws Failure.
Options parse_options(std::string_view text);

/// Returns the rank that a launcher gave this process, if any did.
std::optional<uint32_t> launcher_rank();

}  // namespace pw::torus
