// The bytes a benchmark moves, and the check that exactly they arrived: random data, a poisoned target, and
// the gaps between blocks must stay poisoned.
#pragma once

#include <cstdint>

#include "peerway/peerway.h"

namespace pw::bench {

/// Fills the region with random bytes that `seed` decides, so that a receiver can tell them without a
/// message.
void fill_random(const pw_region* region, uint64_t seed);

/// Fills the region with a byte that random data does not repeat.
void poison(const pw_region* region);

/// Whether the region holds what fill_random(seed) gave the source in `block`, and poison up to the block's
/// end elsewhere.
bool holds(const pw_region* region, const pw_block& block, uint64_t seed);

}  // namespace pw::bench
