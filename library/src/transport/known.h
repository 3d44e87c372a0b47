// The paths that tables, rules and settings may name.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// Paths that a setting lists, so that they differ between contexts and jobs: "nic:torus" and "nic:toy" are
/// of the family with the prefix "nic:". The transport provides the family.
struct PathFamily {
  std::string prefix;   ///< of the paths' names
  std::string member;   ///< what a path of the family belongs to: "NIC"
  std::string setting;  ///< the setting that lists them: "PEERWAY_NIC"
  std::string entry;    ///< an entry of the setting: "a plugin's file"
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
