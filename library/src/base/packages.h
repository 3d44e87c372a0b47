// Finds folders of installed Python packages, which may contain NVIDIA and UCX libraries from wheels.
#pragma once

#include <string>
#include <vector>

namespace pw {

/// Returns the existing ones of these folders: those that the Python package names in PEERWAY_PACKAGES (for
/// this process and its children; separated by colons), the one in which this library is installed, and those
/// of the active virtual or Conda environment.
std::vector<std::string> package_folders();

/// Returns the files that match a shell pattern, sorted.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace pw
