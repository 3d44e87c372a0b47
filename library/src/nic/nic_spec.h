// Parses the setting that names NICs: [NAME=]PLUGIN[?OPTIONS], several separated by ';'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pw::nic {

struct NicSpec {
  std::string name;     ///< of the NIC; empty: what its plugin calls itself
  std::string plugin;   ///< a file, or TORUS for the libpeerway_nic_TORUS.so that comes with Peerway
  std::string options;  ///< the plugin's own text
};

/// `origin`: where the text stands. Throws Error.
std::vector<NicSpec> parse_nics(std::string_view text, std::string_view origin);

/// The same of a text that may name only one. Throws Error.
NicSpec parse_nic(std::string_view text, std::string_view origin);

/// The file of a plugin. Throws Error where a short name has none.
std::string plugin_file(const std::string& plugin);

/// Whether this names a NIC or a plugin: 1 to 32 lower-case letters, digits and '-'.
bool is_nic_name(std::string_view name);
inline constexpr size_t kLongestNicName = 32;

}  // namespace pw::nic
