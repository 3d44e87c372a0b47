#include "base/secret.h"

#include <charconv>

#include "base/bytes.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte byte : bytes) hex += format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

Secret parse_secret(std::string_view text, const std::string& name) {
  Secret secret{};
  bool good = text.size() == 2 * secret.size();
  for (size_t i = 0; good && i < secret.size(); ++i) {
    unsigned value = 0;
    const char* two = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(two, two + 2, value, 16);
    good = error == std::errc{} && end == two + 2;
    secret[i] = static_cast<std::byte>(value);
  }
  if (!good)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} must be 32 hexadecimal digits; it has {} characters", name, text.size()));
  return secret;
}

Secret derive_secret(const Secret& secret, std::string_view purpose) {
  return siphash(secret, view_of(purpose));
}

}  // namespace pw
