// What an error says, to be said within another message.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace pw {

/// Without the first words of every message, "peerway: ".
inline std::string reason_of(const Error& error) {
  constexpr std::string_view first = "peerway: ";
  const std::string_view message = error.what();
  return std::string(message.starts_with(first) ? message.substr(first.size()) : message);
}

}  // namespace pw
