// The configuration table for Python: every setting with its current value, where that came from, and what is
// wrong with an invalid value.
#include "base/config.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "core.h"

namespace pwpy {
namespace {

struct Setting {
  std::string name, type, fallback, help;
  std::string value, origin, problem;
};

Setting setting_of(const pw::ConfigEntry& entry) {
  Setting setting{std::string(entry.name),
                  std::string(entry.type),
                  std::string(entry.default_value),
                  std::string(entry.help),
                  "",
                  "",
                  ""};
  try {
    setting.origin = pw::config_origin(entry.name);
    setting.value = pw::config(entry.name);
  } catch (const pw::Error& error) {
    setting.problem = std::string("peerway: ") + error.what();
  }
  return setting;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const pw::ConfigEntry& entry : pw::config_table()) all.push_back(setting_of(entry));
  return all;
}

/// Decodes a variable, which may contain any bytes, like Python's own os.environ.
nb::object text_of(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

}  // namespace

void bind_config(nb::module_& module) {
  nb::class_<Setting>(module, "Setting")
      .def_ro("name", &Setting::name)
      .def_ro("type", &Setting::type)
      .def_ro("default", &Setting::fallback)
      .def_ro("help", &Setting::help)
      .def_prop_ro("value", [](const Setting& setting) { return text_of(setting.value); })
      .def_ro("origin", &Setting::origin)
      .def_prop_ro("problem", [](const Setting& setting) { return text_of(setting.problem); })
      .def("__repr__", [](const Setting& setting) {
        return shown("Setting", {{"name", nb::cast(setting.name)},
                                 {"value", text_of(setting.value)},
                                 {"origin", nb::cast(setting.origin)},
                                 {"problem", text_of(setting.problem)}});
      });
  module.def("settings", &settings);
  module.def(
      "check_settings", [] { pw::check_config(); }, "Raises Error for the first setting that cannot be.");
}

}  // namespace pwpy
