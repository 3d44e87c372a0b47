// Sizes and ranges of sizes as people write them: "64K", "1M", "64K:1M".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pw::route {

inline constexpr uint64_t kEnd = uint64_t{1} << 63;  ///< one more than the largest size that is ever routed

/// Parses "4096", "64K", "1M", "2G", "1T" (powers of 1024). Returns nothing if the text is not a size below
/// 2^63.
std::optional<uint64_t> parse_size(std::string_view text);

/// Returns the shortest text that parse_size reads back: 65536 is "64K", 65537 is "65537".
std::string print_size(uint64_t bytes);

/// Sizes from `from` up to but not including `to`.
struct SizeRange {
  uint64_t from = 1;
  uint64_t to = kEnd;
  bool operator==(const SizeRange&) const = default;
};

/// Parses "64K:1M" (both ends included), "64K:", ":1M", "4096" (that size only), "*". Throws
/// Error(PW_INVALID_ARGUMENT).
SizeRange parse_size_range(std::string_view text);

}  // namespace pw::route
