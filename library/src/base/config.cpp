#include "base/config.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/config_value.h"
#include "base/format.h"
#include "base/status.h"

extern char** environ;

namespace pw {
namespace {

using Json = nlohmann::json;

constexpr ConfigEntry library_settings[] = {
    {"log", "choice:error|warning|info|debug", "warning",
     "Messages of this level and more severe ones go to standard error."},
    {"timeout", "seconds", "60",
     "Limit of each exchange while a team, context, plan or halo is being set up."},
    {"plan_timeout", "seconds", "60",
     "Limit of each wait of a plan in a stream or a kernel; the death of a peer ends it earlier."},
    {"wait", "choice:busy-poll|blocking", "busy-poll",
     "How the host waits. busy-poll: polls, for the lowest latency, and uses a whole core; blocking: sleeps "
     "until it is woken."},
    {"launcher", "choice:auto|peerway|pmix|mpirun|slurm|none", "auto",
     "Where rank and size come from. auto: peerway run, then mpirun, then Slurm; none: a team of one."},
    {"strict", "choice:off|on", "off", "on: a faster path that exists but cannot be used is an error."},
    {"paths", "text", "",
     "The only paths to use, separated by commas (peer/copy,staged). Empty: the route table decides."},
    {"routes", "path", "",
     "The route table, made by peerway tune. Empty: this machine's under ~/.config/peerway/routes."},
    {"rules", "path", "",
     "A file of rules that prefer or forbid paths. Empty: ~/.config/peerway/rules.json."},
    {"cache", "path", "", "The folder for compiled device code. Empty: ~/.cache/peerway."},
    {"device", "count", "",
     "The CUDA device of this rank. Empty: the rank's index on its host, modulo the number of devices."},
    {"cuda_library", "path", "", "The CUDA driver library. Empty: libcuda.so.1 of the system."},
    {"nvml_library", "path", "",
     "The NVML library, which knows the GPUs that CUDA_VISIBLE_DEVICES hides. Empty: libnvidia-ml.so.1 of "
     "the "
     "system."},
    {"nvrtc_library", "path", "",
     "The NVRTC library. Empty: that of the toolkit, the system or the Python wheel."},
    {"ucx_library", "path", "",
     "libucp.so.0 of UCX. Empty: that of UCX_ROOT, the system or the Python wheel."},
    {"ucx", "choice:auto|on|off", "auto",
     "UCX, the path to other hosts. auto: started if ranks are on several hosts, or if `paths` or the route "
     "table names it."},
    {"nic", "text", "",
     "NICs, separated by ';', each [NAME=]PLUGIN[?OPTIONS]: the plugin's file, or its name if it comes with "
     "Peerway, and options for it. Empty: none."},
    {"host_id", "text", "",
     "For tests only. Simulates several hosts on one: ranks with different values share no memory, as on "
     "different hosts."},
    {"gdrcopy_library", "path", "", "The GDRCopy library. Empty: libgdrapi.so.2 of the system."},
};

/// Set by `peerway run` for its ranks, and by the Python package for its children; these are not settings.
constexpr std::string_view of_launcher[] = {"RANK",       "SIZE",   "LOCAL_RANK", "LOCAL_SIZE",
                                            "RENDEZVOUS", "SECRET", "PACKAGES"};

/// Prefixes of the variables of other products. Each product checks its own variables.
constexpr std::string_view product_prefixes[] = {"ACC",  "BUILD", "JOBS",  "MPI",
                                                 "NIC_", "TEST",  "TRACE", "UCT"};

/// The settings that products have declared, and the prefixes of their names in capitals.
struct Declared {
  std::mutex mutex;
  std::vector<ConfigEntry> entries{std::begin(library_settings), std::end(library_settings)};
  std::vector<std::string> prefixes;
};

Declared& declared() {
  static auto& all = *new Declared;  // never destroyed, because it may be used at exit
  return all;
}

struct Value {
  std::string text;
  std::string origin;  ///< "PEERWAY_LOG", "log in /home/.../config.json"
};

std::string in_capitals(std::string_view name) {
  std::string capitals;
  for (const char letter : name)
    capitals += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
  return capitals;
}

std::string variable_of(std::string_view name) { return "PEERWAY_" + in_capitals(name); }

/// Whether a variable, without PEERWAY_, belongs to a product that this process has not loaded.
bool is_of_another_product(std::string_view name) {
  std::lock_guard lock(declared().mutex);
  return std::ranges::any_of(product_prefixes, [&](std::string_view prefix) {
    return name.starts_with(prefix) &&
           std::ranges::find(declared().prefixes, prefix) == declared().prefixes.end();
  });
}

ConfigEntry entry_of(std::string_view name) {
  const auto entries = config_table();
  const auto entry = std::ranges::find(entries, name, &ConfigEntry::name);
  if (entry == entries.end()) throw Error(PW_INTERNAL, format("there is no setting '{}'", name));
  return *entry;
}

std::string directory(const char* xdg_variable, const char* below_home) {
  // By the XDG rules a relative value is ignored.
  if (const char* base = std::getenv(xdg_variable); base && base[0] == '/')
    return std::string(base) + "/peerway";
  const char* home = std::getenv("HOME");
  return format("{}/{}/peerway", home && *home ? home : "/", below_home);
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const ConfigEntry& entry : config_table()) all.push_back(entry.name);
  return all;
}

std::map<std::string, Value, std::less<>> read_file(const std::string& path) {
  std::map<std::string, Value, std::less<>> values;
  std::ifstream file(path);
  if (!file) return values;
  const Json json = Json::parse(file, nullptr, false, true);
  if (!json.is_object())
    throw Error(PW_BAD_CONFIG, format("{} must be one JSON object, such as {{\"log\": \"info\"}}", path));
  const auto known = names();
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(known, name) == known.end() && !is_of_another_product(in_capitals(name))) {
      const std::string_view near = nearest_name(name, known);
      throw Error(PW_BAD_CONFIG, format("'{}' in {} is not a setting{}", name, path,
                                        near.empty() ? std::string("; `peerway config` lists them all")
                                                     : format("; did you mean '{}'?", near)));
    }
    std::string text = value.is_string()    ? value.get<std::string>()
                       : value.is_boolean() ? (value.get<bool>() ? "on" : "off")
                                            : value.dump();
    values[name] = {std::move(text), format("'{}' in {}", name, path)};
  }
  return values;
}

/// Reads the file once for each path that it can have.
std::map<std::string, Value, std::less<>> file_values() {
  static std::mutex mutex;
  static std::map<std::string, std::map<std::string, Value, std::less<>>> files;
  const std::string path = config_home() + "/config.json";
  std::lock_guard lock(mutex);
  if (const auto known = files.find(path); known != files.end()) return known->second;
  return files[path] = read_file(path);
}

Value value_of(const ConfigEntry& entry) {
  const std::string variable = variable_of(entry.name);
  if (const char* value = std::getenv(variable.c_str())) return {value, variable};
  const auto values = file_values();
  if (const auto value = values.find(entry.name); value != values.end()) return value->second;
  return {std::string(entry.default_value), format("the default of '{}'", entry.name)};
}

/// An empty value means "derived" if the default is empty.
uint64_t check(const ConfigEntry& entry, const Value& value) {
  if (value.text.empty() && entry.default_value.empty()) return 0;
  return parse_config_value(entry.type, value.text, value.origin);
}

/// Refuses unknown variables, because a misspelt setting would otherwise be ignored.
void refuse_unknown_variables() {
  // The prefix is common to all names, so it is left out of the edit distance.
  constexpr std::string_view prefix = "PEERWAY_";
  std::vector<std::string> known;
  known.assign(std::begin(of_launcher), std::end(of_launcher));
  for (const std::string_view setting : names()) known.push_back(in_capitals(setting));
  for (char** each = environ; each && *each; ++each) {
    const std::string_view setting = *each;
    if (!setting.starts_with(prefix)) continue;
    const std::string_view name = setting.substr(prefix.size(), setting.find('=') - prefix.size());
    if (std::ranges::find(known, name) != known.end() || is_of_another_product(name)) continue;
    const std::string_view near = nearest_name(name, known);
    throw Error(PW_BAD_CONFIG, format("{}{} in the environment is not a setting; {}", prefix, name,
                                      near.empty() ? std::string("`peerway config` lists them all; unset it")
                                                   : format("did you mean {}{}?", prefix, near)));
  }
}

}  // namespace

std::vector<ConfigEntry> config_table() {
  std::lock_guard lock(declared().mutex);
  return declared().entries;
}

void declare_settings(std::string_view prefix, std::span<const ConfigEntry> entries) {
  std::lock_guard lock(declared().mutex);
  declared().entries.insert(declared().entries.end(), entries.begin(), entries.end());
  declared().prefixes.push_back(in_capitals(prefix));
}

std::string config(std::string_view name) {
  const ConfigEntry entry = entry_of(name);
  Value value = value_of(entry);
  check(entry, value);
  return std::move(value.text);
}

std::string config_origin(std::string_view name) { return value_of(entry_of(name)).origin; }

uint64_t config_number(std::string_view name) {
  const ConfigEntry entry = entry_of(name);
  return check(entry, value_of(entry));
}

void check_config() {
  for (const ConfigEntry& entry : config_table()) check(entry, value_of(entry));
  refuse_unknown_variables();
}

std::string config_home() { return directory("XDG_CONFIG_HOME", ".config"); }
std::string cache_home() { return directory("XDG_CACHE_HOME", ".cache"); }

}  // namespace pw
