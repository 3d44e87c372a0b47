#include "nic/nic_spec.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "base/status.h"

namespace pw::nic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libpeerway_nic_", kSuffix = ".so";

NicSpec parse_entry(std::string_view entry, std::string_view origin) {
  const auto refuse = [&](const std::string& why) {
    return Error(PW_BAD_CONFIG, format("{}: '{}' {}; a NIC is [NAME=]PLUGIN[?OPTIONS]", origin, entry, why));
  };
  NicSpec spec;
  const size_t question = entry.find('?');
  if (question != std::string_view::npos) spec.options = entry.substr(question + 1);
  std::string_view plugin = entry.substr(0, question);
  const size_t equals = plugin.find('=');
  if (equals < plugin.find('/')) {  // otherwise '=' is part of a file's name
    spec.name = plugin.substr(0, equals);
    plugin.remove_prefix(equals + 1);
    if (!is_nic_name(spec.name))
      throw refuse(
          format("gives the NIC the name '{}'; a name has 1 to {} lower-case letters, digits and '-'",
                 spec.name, kLongestNicName));
  }
  if (plugin.empty()) throw refuse("names no plugin");
  spec.plugin = plugin;
  return spec;
}

// Returns the folders of plugins that come with Peerway: beside the library that contains this code, or the
// lib/ of the Python package.
std::vector<fs::path> plugin_folders() {
  Dl_info here{};
  static const int in_this_library = 0;
  if (dladdr(&in_this_library, &here) == 0 || here.dli_fname == nullptr) return {};
  const fs::path folder = fs::absolute(here.dli_fname).parent_path();
  return {folder / "lib", folder};
}

std::string plugins_in(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(folder, ignored)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with(kPrefix) && name.ends_with(kSuffix))
        names.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "none is" : all + (names.size() == 1 ? " is" : " are");
}

}  // namespace

bool is_nic_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestNicName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::vector<NicSpec> parse_nics(std::string_view text, std::string_view origin) {
  std::vector<NicSpec> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    if (end > 0) all.push_back(parse_entry(text.substr(0, end), origin));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

NicSpec parse_nic(std::string_view text, std::string_view origin) {
  std::vector<NicSpec> all = parse_nics(text, origin);
  if (all.size() == 1) return std::move(all.front());
  throw Error(PW_BAD_CONFIG, format("{}: '{}' names {} NICs; name one", origin, text, all.size()));
}

std::string plugin_file(const std::string& plugin) {
  if (plugin.find('/') != std::string::npos) return plugin;
  const std::vector<fs::path> folders = plugin_folders();
  for (const fs::path& folder : folders) {
    const fs::path file = folder / format("{}{}{}", kPrefix, plugin, kSuffix);
    if (fs::exists(file)) return file.string();
  }
  const std::string file = fs::exists(plugin) ? format("did you mean the file ./{}?", plugin)
                                              : "or give a plugin's file, with a '/' in its path";
  throw Error(PW_UNAVAILABLE,
              format("there is no NIC plugin '{}'; {} here; {}", plugin, plugins_in(folders), file));
}

}  // namespace pw::nic
