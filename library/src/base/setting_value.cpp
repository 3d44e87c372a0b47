#include "base/setting_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

[[noreturn]] void refuse(const std::string& name, std::string_view value, std::string_view allowed) {
  throw Error(PW_BAD_CONFIG, format("{} is '{}'; it must be {}", name, value, allowed));
}

uint64_t parse_count(std::string_view value, const std::string& name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc{} && end == value.data() + value.size();
  if (!whole) refuse(name, value, "a whole number, 0 or more");
  return number;
}

uint64_t parse_seconds(std::string_view value, const std::string& name) {
  constexpr std::string_view allowed =
      "a number of seconds, more than 0 and at most 1000000, such as 60 or 0.5";
  double seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  const bool whole = error == std::errc{} && end == value.data() + value.size();
  if (!whole || !std::isfinite(seconds) || seconds <= 0 || seconds > 1e6) refuse(name, value, allowed);
  return std::max<uint64_t>(1, static_cast<uint64_t>(seconds * 1e9));
}

uint64_t parse_choice(std::string_view alternatives, std::string_view value, const std::string& name) {
  std::string allowed = "one of";
  for (size_t number = 0;; ++number) {
    const std::string_view choice = alternative(alternatives, number);
    if (choice.empty()) refuse(name, value, allowed);
    if (choice == value) return number;
    allowed += format("{} {}", number == 0 ? "" : ",", choice);
  }
}

}  // namespace

uint64_t parse_setting(std::string_view type, std::string_view value, const std::string& name) {
  if (type == "count") return parse_count(value, name);
  if (type == "seconds") return parse_seconds(value, name);
  if (type == "path" && !value.empty() && value.front() != '/') refuse(name, value, "an absolute path");
  if (type.starts_with("choice:")) return parse_choice(type.substr(7), value, name);
  return 0;
}

std::string_view alternative(std::string_view alternatives, size_t number) {
  for (; number > 0; --number) {
    const size_t bar = alternatives.find('|');
    if (bar == std::string_view::npos) return {};
    alternatives.remove_prefix(bar + 1);
  }
  return alternatives.substr(0, alternatives.find('|'));
}

unsigned edit_distance(std::string_view a, std::string_view b) {
  std::vector<unsigned> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0U);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] != b[j - 1]), row[j - 1] + 1, above[j] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above.back();
}

}  // namespace pw
