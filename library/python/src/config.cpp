// The settings for Python: every setting with its current value, where that came from, and what is
// wrong with an invalid value.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "base/setting.h"
#include "base/status.h"
#include "core.h"

namespace pwpy {
namespace {

struct Setting {
  std::string name, type, fallback, help;
  std::string value, origin, problem;
};

Setting shown_setting(const pw::Setting& declared) {
  Setting setting{std::string(declared.name()),
                  declared.type(),
                  std::string(declared.default_text()),
                  std::string(declared.help()),
                  "",
                  "",
                  ""};
  try {
    setting.origin = declared.origin();
    setting.value = declared.text();
  } catch (const pw::Error& error) {
    setting.problem = std::string("peerway: ") + error.what();
  }
  return setting;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const pw::Setting* setting : pw::all_settings()) all.push_back(shown_setting(*setting));
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
      "check_settings", [] { pw::check_settings(); }, "Raises Error for the first setting that cannot be.");
}

}  // namespace pwpy
