// Converts sizes with suffixes to and from text.
#include "route/size_text.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/status.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

constexpr std::string_view kSuffixes = "KMGT";

uint64_t bound(std::string_view text, std::string_view whole) {
  const auto size = parse_size(text);
  if (size) return *size;
  throw Error(PW_INVALID_ARGUMENT,
              format("{} is not a size, in the range {}; sizes are whole numbers below 2^63 with an optional "
                     "K, M, G or T (powers of 1024), as in \"64K:1M\"",
                     in_quotes(text), in_quotes(whole)));
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const auto suffix = text.substr(static_cast<size_t>(rest - text.data()));
  int shift = 0;
  if (!suffix.empty()) {
    const size_t index = kSuffixes.find(suffix.front());
    if (suffix.size() != 1 || index == std::string_view::npos) return std::nullopt;
    shift = 10 * (static_cast<int>(index) + 1);
  }
  if (value >= kEnd >> shift) return std::nullopt;
  return value << shift;
}

std::string print_size(uint64_t bytes) {
  size_t suffix = 0;
  while (bytes != 0 && bytes % 1024 == 0 && suffix < kSuffixes.size()) {
    bytes /= 1024;
    ++suffix;
  }
  std::string text = std::to_string(bytes);
  if (suffix > 0) text += kSuffixes[suffix - 1];
  return text;
}

SizeRange parse_size_range(std::string_view text) {
  if (text == "*") return {};
  const size_t colon = text.find(':');
  const std::string_view from = text.substr(0, colon);
  const std::string_view to = colon == std::string_view::npos ? from : text.substr(colon + 1);
  SizeRange range;
  if (!from.empty()) range.from = std::max<uint64_t>(1, bound(from, text));
  if (!to.empty() || colon == std::string_view::npos) range.to = bound(to, text) + 1;
  if (range.from < range.to) return range;
  throw Error(PW_INVALID_ARGUMENT, format("the range {} is empty: it starts at {} bytes and ends at {}; "
                                          "write the smaller size first, and at least 1",
                                          in_quotes(text), range.from, range.to - 1));
}

}  // namespace pw::route
