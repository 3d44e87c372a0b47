// FNV-1a: distinguishes texts; not for secrets. Values are stored in files and sent between processes, so
// they must never change.
#pragma once

#include <cstdint>
#include <string_view>

namespace pw {

constexpr uint64_t kNoHash = 14695981039346656037u;

/// `before` is the hash of the text before this one.
constexpr uint64_t hash_of(std::string_view text, uint64_t before = kNoHash) {
  for (const char c : text) before = (before ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return before;
}

}  // namespace pw
