#include "device/host/copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pw {
namespace {

// With a block size known to the compiler, memcpy is one load and one store.
template <size_t Bytes>
void copy_fixed(const Copy& copy) {
  for_each_block(copy, [](std::byte* to, const std::byte* from) { std::memcpy(to, from, Bytes); });
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void stream_lines(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kStep = 128, kAhead = 1024;
  for (size_t i = 0; i < bytes; i += kStep) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i + kAhead), _MM_HINT_T0);
    const auto* f = reinterpret_cast<const __m256i*>(from + i);
    auto* t = reinterpret_cast<__m256i*>(to + i);
    const __m256i a = _mm256_loadu_si256(f), b = _mm256_loadu_si256(f + 1);
    const __m256i c = _mm256_loadu_si256(f + 2), d = _mm256_loadu_si256(f + 3);
    _mm256_stream_si256(t, a);
    _mm256_stream_si256(t + 1, b);
    _mm256_stream_si256(t + 2, c);
    _mm256_stream_si256(t + 3, d);
  }
  _mm_sfence();  // non-temporal stores would otherwise not be ordered before the signal
}

void stream_block(std::byte* to, const std::byte* from, uint64_t bytes) {
  static const bool supported = __builtin_cpu_supports("avx2");
  if (!supported || bytes < 4096) {
    std::memcpy(to, from, bytes);
    return;
  }
  const uint64_t head = -reinterpret_cast<uintptr_t>(to) & 127;
  const uint64_t body = (bytes - head) & ~uint64_t{127};
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}
#else
void stream_block(std::byte* to, const std::byte* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace

void host_copy(const Copy& copy) {
  const uint64_t bytes = copy.layout.shape.block_bytes;
  if (copy.layout.shape.contiguous()) {
    std::memcpy(copy.to, copy.from, bytes);
    return;
  }
  switch (bytes) {
    case 4:
      return copy_fixed<4>(copy);
    case 8:
      return copy_fixed<8>(copy);
    case 16:
      return copy_fixed<16>(copy);
    case 32:
      return copy_fixed<32>(copy);
    default:
      for_each_block(copy, [bytes](std::byte* to, const std::byte* from) { std::memcpy(to, from, bytes); });
  }
}

void host_copy_streaming(const Copy& copy) {
  const uint64_t bytes = copy.layout.shape.block_bytes;
  if (bytes < 4096) return host_copy(copy);
  for_each_block(copy, [bytes](std::byte* to, const std::byte* from) { stream_block(to, from, bytes); });
}

}  // namespace pw
