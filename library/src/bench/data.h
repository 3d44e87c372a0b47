// The data that a benchmark moves: random bytes into a poisoned target. Afterwards it checks that exactly
// these bytes arrived and that gaps between blocks are still poisoned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peerway/peerway.h"

namespace pw::bench {

/// Fills the region's first `bytes` with random bytes that `seed` decides, so that a receiver can tell them
/// without a message.
void fill_random(const pw_region* region, uint64_t bytes, uint64_t seed);

/// Fills the region's first `bytes` with one value.
void poison(const pw_region* region, uint64_t bytes);

/// Copies host bytes to the region's beginning, or back, whole when it returns.
void store(const pw_region* region, const std::byte* from, uint64_t bytes);
void load(const pw_region* region, std::byte* to, uint64_t bytes);

/// Whether the region holds what fill_random(seed) gave the source in `block`, and poison up to the block's
/// end elsewhere.
bool holds(const pw_region* region, const pw_block& block, uint64_t seed);

}  // namespace pw::bench
