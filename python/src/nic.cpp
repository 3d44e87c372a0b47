// Plugins of network cards (src/nic) for Python: how people name them, and their conformance test.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>

#include <filesystem>

#include "core.h"
#include "nic/card_spec.h"
#include "nic/check/check.h"

namespace pwpy {

namespace {

struct NicCard {
  std::string file, options;
};

}  // namespace

void bind_nic(nb::module_& module) {
  using namespace pw::nic::check;
  nb::class_<NicCard>(module, "NicCard").def_ro("file", &NicCard::file).def_ro("options", &NicCard::options);
  module.def(
      "nic_card",
      [](const std::string& text, const std::string& origin) {
        const pw::nic::CardSpec spec = pw::nic::parse_card(text, origin);
        return NicCard{std::filesystem::absolute(pw::nic::plugin_file(spec.plugin)).string(), spec.options};
      },
      nb::arg("text"), nb::arg("origin"));
  nb::enum_<Outcome>(module, "NicOutcome")
      .value("RIGHT", Outcome::right)
      .value("WRONG", Outcome::wrong)
      .value("ABSENT", Outcome::absent);
  nb::class_<Verdict>(module, "NicVerdict")
      .def_ro("law", &Verdict::law)
      .def_ro("outcome", &Verdict::outcome)
      .def_ro("found", &Verdict::found);
  module.def(
      "nic_check",
      [](const std::string& plugin, uint64_t job, const std::string& configuration, int socket,
         const std::function<void()>& kill_far_end, const std::function<void(const Verdict&)>& tell) {
        const nb::gil_scoped_release release;
        check(
            plugin, job, configuration, socket,
            [&] {
              const nb::gil_scoped_acquire acquire;
              kill_far_end();
            },
            [&](const Verdict& verdict) {
              const nb::gil_scoped_acquire acquire;
              tell(verdict);
            });
      },
      nb::arg("plugin"), nb::arg("job"), nb::arg("configuration"), nb::arg("socket"), nb::arg("kill_far_end"),
      nb::arg("tell"));
  module.def(
      "nic_far_end",
      [](const std::string& plugin, uint64_t job, int socket) {
        const nb::gil_scoped_release release;
        serve_far_end(plugin, job, socket);
      },
      nb::arg("plugin"), nb::arg("job"), nb::arg("socket"));
}

}  // namespace pwpy
