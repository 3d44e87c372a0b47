// Parses and checks the value of one setting according to its type. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace pw {

/// Checks `value` against `type` (see Setting) and returns it as a number where the type has one: counts,
/// seconds in nanoseconds, choices by their places from 0; 0 otherwise. Throws Error(PW_BAD_CONFIG) whose
/// message says what is allowed; `name` is the setting and where it came from.
uint64_t parse_setting(std::string_view type, std::string_view value, const std::string& name);

/// The one of "a|b|c" with that number; empty beyond the last.
std::string_view alternative(std::string_view alternatives, size_t number);

/// The candidate most like `name`, the first of several; an empty view when none is near. For "did you mean".
template <typename Candidates>
std::string_view nearest_name(std::string_view name, const Candidates& candidates);

/// Edits (insert, remove, replace, swap two neighbours) that turn `a` into `b`.
unsigned edit_distance(std::string_view a, std::string_view b);

template <typename Candidates>
std::string_view nearest_name(std::string_view name, const Candidates& candidates) {
  std::string_view nearest;
  // One letter in three, so that of a short name most must be right: FOO is no LOG.
  unsigned limit = std::max(1U, static_cast<unsigned>(name.size()) / 3) + 1;
  for (const std::string_view candidate : candidates)
    if (const unsigned edits = edit_distance(name, candidate); edits < limit) {
      limit = edits;
      nearest = candidate;
    }
  return nearest;
}

}  // namespace pw
