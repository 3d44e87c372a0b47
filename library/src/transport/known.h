// The paths that tables, rules and settings may name.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// Paths that a setting lists, so that contexts and jobs have different ones: "nic:torus" and "nic:toy",
/// whose prefix is "nic:". Its transport supplies it.
struct PathFamily {
  std::string prefix;   ///< of the paths' names
  std::string member;   ///< what one is of: "NIC"
  std::string setting;  ///< that lists them: "PEERWAY_NIC"
  std::string entry;    ///< what it lists: "a plugin's file"
};

/// The family that a path's name belongs to, or null.
inline const PathFamily* family_of(std::span<const PathFamily> families, std::string_view path) {
  const auto match = std::ranges::find_if(
      families, [&](const PathFamily& family) { return path.starts_with(family.prefix); });
  return match == families.end() ? nullptr : &*match;
}

/// All paths of this build, available or not, and the families that may have more.
struct KnownPaths {
  std::vector<std::string> names{};
  std::vector<PathFamily> families{};
};

}  // namespace pw
