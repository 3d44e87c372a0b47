// Exchanges values between the GPUs of a set's ranks: from one rank to all, or from all to all.
#pragma once

#include <cstddef>
#include <optional>

#include "peerway/handles.h"
#include "peerway/peerway.hpp"
#include "xacc/runtime/program/sets.h"

namespace pwx {

constexpr int kNoRoot = -1;          ///< an exchange in which all send to all
constexpr int kExchangeBlocks = 32;  ///< the most blocks of a kernel that exchanges values itself

/// GPU memory for the values of a set's ranks, and the plan that transfers them. If `lanes` is set, a kernel
/// sends and receives the values itself, and the plan only provides its lanes.
struct Exchange {
  size_t stride;  ///< bytes between the values of two successive ranks
  peerway::Region parts;
  peerway::Plan plan;
  std::optional<peerway::Region> epochs{};
  std::optional<pw_all_reduce_handle> lanes{};

  [[nodiscard]] std::byte* part(int place) const {
    return static_cast<std::byte*>(parts.address()) + static_cast<size_t>(place) * stride;
  }
  void run();
};

/// The exchange for a set and a size, made at the first call. All ranks of the set must request the same
/// exchanges in the same order. `by_kernel`: all to all, with `lanes` if all ranks can have them.
Exchange& exchange_of(const Set& set, size_t bytes, int root, bool by_kernel);

/// Call it before the context ends.
void free_exchanges();

}  // namespace pwx
