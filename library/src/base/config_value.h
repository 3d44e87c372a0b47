// Parses and checks one configuration value according to its type. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace pw {

/// Checks `value` against `type` (see ConfigEntry). Returns it as a number if the type is numeric: counts,
/// bytes (suffixes K M G T, powers of 1024), seconds in nanoseconds; otherwise 0. Throws Error(PW_BAD_CONFIG)
/// with what is allowed; `name` is the setting and where the value came from.
uint64_t parse_config_value(std::string_view type, std::string_view value, const std::string& name);

/// Returns the candidate nearest to `name`, the first if there are several; empty if none is near. For "did
/// you mean".
template <typename Candidates>
std::string_view nearest_name(std::string_view name, const Candidates& candidates);

/// Returns the number of edits (insert, remove, replace, swap two neighbours) that turn `a` into `b`.
unsigned edit_distance(std::string_view a, std::string_view b);

template <typename Candidates>
std::string_view nearest_name(std::string_view name, const Candidates& candidates) {
  std::string_view nearest;
  // Allows one edit in three letters, so that most letters of a short name must be right: FOO is not near
  // LOG.
  unsigned limit = std::max(1U, static_cast<unsigned>(name.size()) / 3) + 1;
  for (const std::string_view candidate : candidates)
    if (const unsigned edits = edit_distance(name, candidate); edits < limit) {
      limit = edits;
      nearest = candidate;
    }
  return nearest;
}

}  // namespace pw
