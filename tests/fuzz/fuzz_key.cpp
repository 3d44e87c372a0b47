// libFuzzer: the key parser. Whatever bytes come, it answers with a key or an Error; a key that it accepts
// packs to a key that means the same.
#include <cstdlib>

#include "base/status.h"
#include "memory/key.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto packed = pw::pack(pw::parse_key(bytes));
    if (packed.size() != size || pw::pack(pw::parse_key(packed)) != packed) std::abort();
  } catch (const pw::Error& error) {
    if (error.status() != PW_BAD_KEY) std::abort();
  }
  return 0;
}
