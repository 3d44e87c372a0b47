// The limits of the hardware, measured without the library: one core's memcpy, and a bare flag between two
// processes.
#pragma once

#include <cstdint>

#include "bench/samples.h"
#include "peerway/peerway.h"

namespace pw::bench {

/// Makes `window` copies of a block between two places of this process per sample.
Samples copy_window(std::byte* to, const std::byte* from, const pw_block& block, uint64_t window,
                    uint64_t iterations);

/// Bounces a counter between two processes in memory that both have mapped: each writes its own line and
/// spins on the other's. A sample is a round trip. Both words must start at the same value. Throws
/// Error(PW_TIMEOUT).
Samples flag_ping_pong(uint64_t* mine, const uint64_t* partners, bool leads, uint64_t iterations,
                       uint64_t timeout_ns);

}  // namespace pw::bench
