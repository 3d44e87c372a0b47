#include "nic/job.h"

#include <cstdlib>

namespace pw::nic {

std::optional<Secret> secret_from_environment() {
  const char* text = std::getenv("PEERWAY_NIC_SECRET");
  if (text == nullptr || *text == '\0') return std::nullopt;
  return parse_secret(text, "PEERWAY_NIC_SECRET");
}

}  // namespace pw::nic
