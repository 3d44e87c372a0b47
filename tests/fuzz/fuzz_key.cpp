// libFuzzer: the parser of what a key's hash authenticates (no fuzzer forges the hash). Whatever bytes come,
// it answers with a key or an Error; a key that it accepts packs to a key that means the same.
#include <cstdlib>

#include "base/status.h"
#include "memory/key.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto packed = pw::pack_body(pw::parse_body(bytes), 1);
    if (packed.size() != size || pw::pack_body(pw::parse_body(packed), 1) != packed) std::abort();
  } catch (const pw::Error& error) {
    if (error.status() != PW_BAD_KEY) std::abort();
  }
  return 0;
}
