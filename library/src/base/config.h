// The one configuration table: name, type, default, one line of help. The environment variables
// (PEERWAY_NAME), the configuration file (~/.config/peerway/config.json, one JSON object) and the
// documentation page are all made from it. Nothing here is needed for good performance.
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
  std::string_view default_value;  ///< as text; empty means derived, and help says from what
  std::string_view help;
};

/// All settings that are declared, for `peerway config` and the documentation: the library's, and those of
/// the products that this process has loaded.
std::vector<ConfigEntry> config_table();

/// Adds the settings of a product beside the library, whose names begin with `prefix`, such as "acc".
/// `entries` and their texts stay for ever. A product declares them as its shared library is loaded.
void declare_settings(std::string_view prefix, std::span<const ConfigEntry> entries);

/// The value in force: environment, then file, then default. Throws Error(PW_BAD_CONFIG) for a value that
/// does not fit its type, naming the value, where it came from and what is allowed.
std::string config(std::string_view name);
std::string config_origin(std::string_view name);  ///< "PEERWAY_LOG", "the default of 'log'", ...
/// The same as a number: counts, bytes (suffixes K M G T) and seconds (in nanoseconds).
uint64_t config_number(std::string_view name);

/// Checks every value now in force, so that a mistake is reported at the start and not in the middle. Throws
/// as config() does, and for PEERWAY_ variables that are no settings; products that are not loaded check
/// theirs themselves.
void check_config();

/// ~/.config/peerway and ~/.cache/peerway, by the XDG rules.
std::string config_home();
std::string cache_home();

}  // namespace pw
