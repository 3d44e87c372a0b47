// Folders of installed Python packages, where NVIDIA and UCX libraries lie that came as wheels.
#pragma once

#include <string>
#include <vector>

namespace pw {

/// Adds a folder to what package_folders() gives; the Python package names its own.
void add_package_folder(const std::string& folder);

/// Folders that exist: those added, the one this library itself is installed in, and those of the active
/// virtual or Conda environment.
std::vector<std::string> package_folders();

/// Files that match a shell pattern, sorted.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace pw
