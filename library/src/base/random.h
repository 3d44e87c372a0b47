// Random bytes from the kernel, for secrets and nonces.
#pragma once

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "base/status.h"

namespace pw {

template <size_t Count>
std::array<std::byte, Count> random_bytes() {
  std::array<std::byte, Count> bytes;
  static_assert(Count <= 256, "getrandom gives up to 256 bytes whole");
  ssize_t got = -1;
  do got = ::getrandom(bytes.data(), Count, 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(Count))
    throw Error(PW_SYSTEM, "the operating system returned no random bytes" + errno_text(errno));
  return bytes;
}

}  // namespace pw
