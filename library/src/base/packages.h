// Folders of installed Python packages, where NVIDIA and UCX libraries lie that came as wheels.
#pragma once

#include <string>
#include <vector>

namespace pw {

/// Folders that exist: those that the Python package names in PEERWAY_PACKAGES (for this process and its
/// children; separated by colons), the one this library itself is installed in, and those of the active
/// virtual or Conda environment.
std::vector<std::string> package_folders();

/// Files that match a shell pattern, sorted.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace pw
