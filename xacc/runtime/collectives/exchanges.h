// Values of the ranks of a set on their GPUs, brought from one to all or from all to all.
#pragma once

#include <cstddef>
#include <optional>

#include "peerway/peerway.hpp"
#include "xacc/runtime/kernels/exchange_arguments.h"
#include "xacc/runtime/program/sets.h"

namespace pwx {

constexpr int kNoRoot = -1;          ///< of an exchange where all send to all
constexpr int kExchangeBlocks = 32;  ///< of a kernel that exchanges, at most

/// Room on the GPU for the values of the ranks of a set, and the plan that brings them there. With `peers` a
/// kernel sends and receives them itself, and the plan is only what it uses.
struct Exchange {
  size_t stride;  ///< bytes from one rank's values to the next one's
  peerway::Region parts;
  peerway::Plan plan;
  std::optional<peerway::Region> epochs{};
  std::optional<pwx_peers> peers{};

  [[nodiscard]] std::byte* part(int place) const {
    return static_cast<std::byte*>(parts.address()) + static_cast<size_t>(place) * stride;
  }
  void run();
};

/// Every rank of the set asks for the same ones in the same order. `by_kernel`: with peers, where all ranks
/// can; all to all.
Exchange& exchange_of(const Set& set, size_t bytes, int root, bool by_kernel);

/// Before the context ends.
void free_exchanges();

}  // namespace pwx
