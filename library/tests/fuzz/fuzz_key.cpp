// The parser of what a key's hash authenticates (no fuzzer forges the hash). Whatever bytes come,
// it answers with a key or an Error; a key that it accepts packs to a key that means the same.

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "memory/key.h"

namespace pw::fuzz {

FUZZ(fuzz_key) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto packed = pack_body(parse_body(bytes), 1);
    require(packed.size() == size && pack_body(parse_body(packed), 1) == packed);
  } catch (const Error& error) {
    require(error.status() == PW_BAD_KEY);
  }
}

}  // namespace pw::fuzz
