// The configuration table: name, type, default and one line of help for each setting. The environment
// variables (PEERWAY_NAME), the configuration file (~/.config/peerway/config.json, one JSON object) and the
// documentation page are all derived from it. No setting is needed for good performance.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

struct ConfigEntry {
  std::string_view name;  ///< lower case; the variable is PEERWAY_ and the name in upper case
  std::string_view type;  ///< "text", "path", "count", "bytes", "seconds", "choice:a|b|c"; paths are absolute
  std::string_view default_value;  ///< as text; empty means derived, and `help` says from what
  std::string_view help;
};

/// Returns all declared settings, for `peerway config` and the documentation: those of the library and of the
/// products that this process has loaded.
std::vector<ConfigEntry> config_table();

/// Adds the settings of another product, whose names begin with `prefix`, such as "acc". `entries` and their
/// texts must stay valid for ever. A product declares them when its shared library is loaded.
void declare_settings(std::string_view prefix, std::span<const ConfigEntry> entries);

/// Returns the current value: from the environment, else the file, else the default. Throws
/// Error(PW_BAD_CONFIG), with the value, where it came from and what is allowed, if the value does not fit
/// the setting's type.
std::string config(std::string_view name);
std::string config_origin(std::string_view name);  ///< "PEERWAY_LOG", "the default of 'log'", ...
/// Returns the value as a number: counts, bytes (suffixes K M G T) or seconds (converted to nanoseconds).
uint64_t config_number(std::string_view name);

/// Checks every current value, so that a mistake is reported at the start and not in the middle. Throws like
/// config(), and if a PEERWAY_ variable is not a setting. Products that are not loaded check their variables
/// themselves.
void check_config();

/// /.config/peerway and ~/.cache/peerway, by the XDG rules.
std::string config_home();
std::string cache_home();

}  // namespace pw
