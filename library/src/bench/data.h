// The data that a benchmark moves: random bytes into a poisoned target. Afterwards it checks that exactly
// these bytes arrived and that gaps between blocks are still poisoned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peerway/peerway.h"

namespace pw::bench {

/// Fills the region's first `bytes` with random bytes derived from `seed`, so that a receiver can check them
/// without a message.
void fill_random(const pw_region* region, uint64_t bytes, uint64_t seed);

/// Fills the region's first `bytes` with one value.
void poison(const pw_region* region, uint64_t bytes);

/// Copy host bytes to the region's beginning, or back; complete when they return.
void store(const pw_region* region, const std::byte* from, uint64_t bytes);
void load(const pw_region* region, std::byte* to, uint64_t bytes);

/// Whether the region contains in `block` what fill_random(seed) gave the source, and poison elsewhere up to
/// the block's end.
bool holds(const pw_region* region, const pw_block& block, uint64_t seed);

}  // namespace pw::bench
