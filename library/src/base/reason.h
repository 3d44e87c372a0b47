// The text of an error, for use inside another message.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace pw {

/// Without the first word of every message, "peerway: ".
inline std::string_view reason_of(std::string_view message) {
  constexpr std::string_view first = "peerway: ";
  return message.starts_with(first) ? message.substr(first.size()) : message;
}

inline std::string reason_of(const std::exception& error) {
  return std::string(reason_of(std::string_view(error.what())));
}

}  // namespace pw
