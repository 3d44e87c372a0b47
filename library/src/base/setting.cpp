#include "base/setting.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"
#include "base/setting_value.h"
#include "base/status.h"

extern char** environ;

namespace pw {
namespace {

using Json = nlohmann::json;

/// Set by `peerway run` for its ranks and by the Python package for its children; not settings.
constexpr std::string_view launcher_variables[] = {"RANK",       "SIZE",   "LOCAL_RANK", "LOCAL_SIZE",
                                                   "RENDEZVOUS", "SECRET", "PACKAGES"};

/// How the names of the settings of other products begin, in capitals. Each product checks its own.
constexpr std::string_view product_prefixes[] = {"ACC",  "BUILD", "JOBS",  "MPI",
                                                 "NIC_", "TEST",  "TRACE", "UCT"};

/// Every setting that is declared, in the order in which the process has loaded them.
struct Declared {
  std::mutex mutex;
  std::vector<const Setting*> settings;
};

Declared& declared() {
  static auto& all = *new Declared;  // outlives what is destroyed at exit
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

/// Whether a variable, without PEERWAY_, is of a product that this process has not loaded.
bool is_of_another_product(std::string_view variable) {
  std::lock_guard lock(declared().mutex);
  return std::ranges::any_of(product_prefixes, [&](std::string_view prefix) {
    return variable.starts_with(prefix) &&
           std::ranges::none_of(declared().settings, [&](const Setting* setting) {
             return in_capitals(setting->name()).starts_with(prefix);
           });
  });
}

std::string directory(const char* xdg_variable, const char* below_home) {
  // The XDG rules: a relative value is ignored.
  if (const char* base = std::getenv(xdg_variable); base && base[0] == '/')
    return std::string(base) + "/peerway";
  const char* home = std::getenv("HOME");
  return format("{}/{}/peerway", home && *home ? home : "/", below_home);
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Setting* setting : all_settings()) all.push_back(setting->name());
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

/// The file is read once for each place it can be at.
std::map<std::string, Value, std::less<>> file_values() {
  static std::mutex mutex;
  static std::map<std::string, std::map<std::string, Value, std::less<>>> files;
  const std::string path = config_home() + "/config.json";
  std::lock_guard lock(mutex);
  if (const auto known = files.find(path); known != files.end()) return known->second;
  return files[path] = read_file(path);
}

Value value_of(const Setting& setting) {
  const std::string variable = variable_of(setting.name());
  if (const char* value = std::getenv(variable.c_str())) return {value, variable};
  const auto values = file_values();
  if (const auto value = values.find(setting.name()); value != values.end()) return value->second;
  return {std::string(setting.default_text()), format("the default of '{}'", setting.name())};
}

/// Returns the value as parse_setting() does. An empty text stands for "derived" if the default is empty: 0.
uint64_t parsed(const Setting& setting, const Value& value) {
  if (value.text.empty() && setting.default_text().empty()) return 0;
  return parse_setting(setting.type(), value.text, value.origin);
}

/// A misspelt setting would be a setting that is ignored.
void refuse_unknown_variables() {
  constexpr std::string_view prefix = "PEERWAY_";  // common to all names, so useless for the distance
  std::vector<std::string> known;
  known.assign(std::begin(launcher_variables), std::end(launcher_variables));
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

Setting::Setting(std::string_view name, std::string_view type, std::string_view alternatives,
                 std::string_view default_text, std::string_view help)
    : name_(name), type_(type), alternatives_(alternatives), default_(default_text), help_(help) {
  std::lock_guard lock(declared().mutex);
  declared().settings.push_back(this);
}

std::string Setting::type() const {
  return alternatives_.empty() ? std::string(type_) : format("{}:{}", type_, alternatives_);
}

std::string Setting::text() const {
  Value value = value_of(*this);
  parsed(*this, value);
  return std::move(value.text);
}

std::string Setting::origin() const { return value_of(*this).origin; }

uint64_t Setting::number() const { return parsed(*this, value_of(*this)); }

std::string_view Setting::alternative(size_t number) const { return pw::alternative(alternatives_, number); }

std::vector<const Setting*> all_settings() {
  std::lock_guard lock(declared().mutex);
  std::vector<const Setting*> settings = declared().settings;
  std::ranges::sort(settings, {}, &Setting::name);
  return settings;
}

const Setting& setting_named(std::string_view name) {
  const auto settings = all_settings();
  const auto setting = std::ranges::find(settings, name, &Setting::name);
  if (setting == settings.end()) throw Error(PW_INTERNAL, format("there is no setting '{}'", name));
  return **setting;
}

void check_settings() {
  for (const Setting* setting : all_settings()) parsed(*setting, value_of(*setting));
  refuse_unknown_variables();
}

std::string config_home() { return directory("XDG_CONFIG_HOME", ".config"); }
std::string cache_home() { return directory("XDG_CACHE_HOME", ".cache"); }

}  // namespace pw
