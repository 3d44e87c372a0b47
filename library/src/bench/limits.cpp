#include "bench/limits.h"

#include <atomic>
#include <cstring>

#include "base/status.h"

namespace pw::bench {

Samples copy_window(std::byte* to, const std::byte* from, const pw_block& block, uint64_t window,
                    uint64_t iterations) {
  const uint64_t rows = block.dims == 0 ? 1 : block.count[0];
  const int64_t stride = block.dims == 0 ? 0 : block.stride[0];
  return timed(iterations, [&] {
    for (uint64_t i = 0; i < window; ++i) {
      for (uint64_t row = 0; row < rows; ++row) {
        const int64_t at = static_cast<int64_t>(block.offset) + static_cast<int64_t>(row) * stride;
        std::memcpy(to + at, from + at, block.block_bytes);
      }
      // This fence forces the compiler to make every copy of the window.
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
}

Samples flag_ping_pong(uint64_t* mine, const uint64_t* partners, bool leads, uint64_t iterations,
                       uint64_t timeout_ns) {
  const std::atomic_ref<uint64_t> own(*mine);
  const std::atomic_ref<uint64_t> other(*const_cast<uint64_t*>(partners));
  const uint64_t started = now_ns();
  uint64_t value = own.load(std::memory_order_relaxed);
  return timed(iterations, [&] {
    ++value;
    if (leads) own.store(value, std::memory_order_release);
    for (uint32_t spins = 1; other.load(std::memory_order_acquire) < value; ++spins) {
      if (spins % 65536 == 0 && now_ns() - started > timeout_ns) {
        throw Error(PW_TIMEOUT, "the partner of a flag ping-pong did not answer.");
      }
    }
    if (!leads) own.store(value, std::memory_order_release);
  });
}

}  // namespace pw::bench
