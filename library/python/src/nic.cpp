// NIC plugins (library/src/nic) for Python: how users name them, and their conformance tests.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "base/random.h"
#include "core.h"
#include "nic/check/check.h"
#include "nic/endpoint.h"
#include "nic/nic_spec.h"

namespace pwpy {

namespace {

struct Nic {
  std::string file, options;
};

using Tell = const std::function<void(const std::string&, nb::object)>&;

// Reports a NIC's properties one by one, as far as they can be read; an Error says what prevented the rest.
// The NIC is opened with a job number of its own.
void probe_nic(const std::string& text, const std::string& origin, uint64_t job, Tell tell) {
  const pw::nic::NicSpec spec = pw::nic::parse_nic(text, origin);
  if (!spec.name.empty()) tell("name", nb::cast(spec.name));
  const std::string file = pw::nic::plugin_file(spec.plugin);
  tell("file", nb::cast(file));
  const auto plugin = pw::nic::Plugin::load(file);
  if (spec.name.empty()) tell("name", nb::cast(plugin->name()));
  tell("abi", nb::cast(plugin->ops().abi));
  const pw::nic::Endpoint endpoint(plugin, pw::nic::Job{job, pw::random_bytes<PW_NIC_SECRET_BYTES>()},
                                   spec.options);
  const pw_nic_info& info = endpoint.info();
  tell("guarantees", nb::cast(info.guarantees));
  tell("memory_kinds", nb::cast(info.memory_kinds));
  tell("largest", nb::cast(info.largest));
  tell("copied", nb::cast(info.copied));
  tell("in_flight", nb::cast(info.in_flight));
  tell("endpoints", nb::cast(info.endpoints));
}

std::vector<std::string> nic_texts(const std::string& text, const std::string& origin) {
  std::vector<std::string> texts;
  for (const pw::nic::NicSpec& spec : pw::nic::parse_nics(text, origin))
    texts.push_back((spec.name.empty() ? "" : spec.name + "=") + spec.plugin +
                    (spec.options.empty() ? "" : "?" + spec.options));
  return texts;
}

}  // namespace

void bind_nic(nb::module_& module) {
  using namespace pw::nic::check;
  nb::class_<Nic>(module, "Nic")
      .def_ro("file", &Nic::file)
      .def_ro("options", &Nic::options)
      .def("__repr__", [](const Nic& nic) {
        return shown("Nic", {{"file", nb::cast(nic.file)}, {"options", nb::cast(nic.options)}});
      });
  module.def(
      "nic_spec",
      [](const std::string& text, const std::string& origin) {
        const pw::nic::NicSpec spec = pw::nic::parse_nic(text, origin);
        return Nic{std::filesystem::absolute(pw::nic::plugin_file(spec.plugin)).string(), spec.options};
      },
      nb::arg("text"), nb::arg("origin"));
  module.def("nic_specs", &nic_texts, nb::arg("text"), nb::arg("origin"));
  module.def("nic_probe", &probe_nic, nb::arg("text"), nb::arg("origin"), nb::arg("job"), nb::arg("tell"));
  nb::enum_<Outcome>(module, "NicOutcome")
      .value("OK", Outcome::ok)
      .value("BROKEN", Outcome::broken)
      .value("INCONCLUSIVE", Outcome::inconclusive)
      .value("ABSENT", Outcome::absent);
  nb::class_<Verdict>(module, "NicVerdict")
      .def_ro("test", &Verdict::test)
      .def_ro("outcome", &Verdict::outcome)
      .def_ro("evidence", &Verdict::evidence)
      .def("__repr__", [](const Verdict& verdict) {
        return shown("NicVerdict", {{"test", nb::cast(verdict.test)},
                                    {"outcome", nb::cast(verdict.outcome)},
                                    {"evidence", nb::cast(verdict.evidence)}});
      });
  module.def("nic_usual_seconds", &usual_seconds);
  module.def("nic_tests", &test_names);
  module.def(
      "nic_check",
      [](const std::string& plugin, const std::string& configuration, uint64_t seed, double effort,
         double patience, const std::vector<std::string>& only,
         const std::function<void(const Verdict&)>& tell) {
        const nb::gil_scoped_release release;
        check({plugin, configuration, seed, effort, patience, only}, [&](const Verdict& verdict) {
          const nb::gil_scoped_acquire acquire;
          tell(verdict);
        });
      },
      nb::arg("plugin"), nb::arg("configuration"), nb::arg("seed"), nb::arg("effort"), nb::arg("patience"),
      nb::arg("only"), nb::arg("tell"));
}

}  // namespace pwpy
