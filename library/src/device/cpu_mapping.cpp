#include "device/cpu_mapping.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pw {
namespace {

#if defined(__x86_64__)
// Loads from write-combined memory are slow one by one; streaming loads fetch a whole line.
__attribute__((target("sse4.1"))) void stream_load(std::byte* to, const std::byte* from, uint64_t bytes) {
  _mm_mfence();  // streaming loads may overtake earlier stores
  uint64_t done = -reinterpret_cast<uintptr_t>(from) & 15;
  if (done > bytes) done = bytes;
  std::memcpy(to, from, done);
  for (; done + 16 <= bytes; done += 16) {
    auto* line = reinterpret_cast<__m128i*>(const_cast<std::byte*>(from + done));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + done), _mm_stream_load_si128(line));
  }
  std::memcpy(to + done, from + done, bytes - done);
}
#endif

}  // namespace

void CpuMapping::store(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
#if defined(__x86_64__)
  _mm_sfence();  // flushes the write-combining buffers
#else
  __sync_synchronize();
#endif
}

void CpuMapping::load(std::byte* to, const std::byte* from, uint64_t bytes) {
#if defined(__x86_64__)
  static const bool supported = __builtin_cpu_supports("sse4.1");
  if (supported) return stream_load(to, from, bytes);
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace pw
