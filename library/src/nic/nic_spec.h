// Parses the setting that names NICs: [NAME=]PLUGIN[?OPTIONS], several separated by ';'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pw::nic {

struct NicSpec {
  std::string name;     ///< name of the NIC; empty: the plugin's own name
  std::string plugin;   ///< a file, or TORUS for the libpeerway_nic_TORUS.so that comes with Peerway
  std::string options;  ///< the plugin's own text
};

/// `origin` says where the text comes from, for messages. Throws Error.
std::vector<NicSpec> parse_nics(std::string_view text, std::string_view origin);

/// The same for a text that may name only one NIC. Throws Error.
NicSpec parse_nic(std::string_view text, std::string_view origin);

/// Returns the file of a plugin. Throws Error if there is no plugin with that short name.
std::string plugin_file(const std::string& plugin);

/// Whether `name` is valid for a NIC or a plugin: 1 to 32 lower-case letters, digits and '-'.
bool is_nic_name(std::string_view name);
inline constexpr size_t kLongestNicName = 32;

}  // namespace pw::nic
