#include "base/packages.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace pw {
namespace {

// Returns the folders that Python found; see library/python/peerway/packages.py.
std::vector<std::string> named_folders() {
  std::vector<std::string> folders;
  const char* named = std::getenv("PEERWAY_PACKAGES");
  for (std::string_view rest = named != nullptr ? named : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

// .../site-packages/peerway/lib/libpeerway.so -> .../site-packages
std::string own_package_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_package_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  for (const char* name : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.rfind(name); at != std::string::npos) return path.substr(0, at + 14);
  return {};
}

}  // namespace

std::vector<std::string> matching_files(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t result{};
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0)
    paths.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  globfree(&result);
  return paths;
}

std::vector<std::string> package_folders() {
  std::vector<std::string> folders = named_folders();
  folders.push_back(own_package_folder());
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* home = std::getenv(variable))
      for (std::string& folder : matching_files(std::string(home) + "/lib/python3.*/site-packages"))
        folders.push_back(std::move(folder));
  std::vector<std::string> existing;
  for (std::string& folder : folders) {
    struct stat status{};
    if (folder.empty() || stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (std::find(existing.begin(), existing.end(), folder) == existing.end())
      existing.push_back(std::move(folder));
  }
  return existing;
}

}  // namespace pw
