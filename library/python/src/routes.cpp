// Functions for bench, tune, explain and config beyond the C interface: paths and their reasons, decisions,
// route tables, devices. Tables and explanations are passed as JSON text, in the format of the route layer.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "base/setting.h"
#include "base/status.h"
#include "context/inspect.h"
#include "context/machine.h"
#include "core.h"
#include "device/device.h"
#include "device/kinds.h"
#include "plan/negotiation/methods.h"
#include "route/rules.h"
#include "route/split.h"
#include "route/table.h"
#include "transport/transport.h"

namespace pwpy {
namespace {

using Text = std::string;

/// A path's answer is the same for put and get, but `op` is checked all the same.
std::vector<std::tuple<Text, bool, Text, bool>> paths_for(Context& context, Remote& remote, Region& region,
                                                          const Text& op) {
  const bool sends = pw::route::parse_op(op) == pw::Op::send;
  std::vector<std::tuple<Text, bool, Text, bool>> offers;
  const auto find = sends ? pw::methods_for : pw::paths_for;
  for (const auto& [name, offer] : find(context->get(), remote->get(), region->get()))
    offers.emplace_back(name, offer.available, offer.why_not, offer.suited);
  return offers;
}

Text explain_for(Context& context, Remote& remote, Region& region, const Text& op, const Text& shape) {
  const pw::Op which = pw::route::parse_op(op);
  const auto of_shape = pw::route::parse_shape_class(shape);
  if (which == pw::Op::send) return pw::explain_send_for(context->get(), remote->get(), region->get());
  return pw::explain_for(context->get(), remote->get(), region->get(), which, of_shape);
}

std::vector<std::pair<Text, Text>> devices() {
  std::vector<std::pair<Text, Text>> names;
  for (const pw::Device* device : pw::devices())
    names.emplace_back(pw::to_string(device->id()), device->name());
  return names;
}

/// The kinds of devices that the library knows, whether or not there are any here; the host's is first.
std::vector<Text> device_kinds() {
  std::vector<Text> names;
  for (const pw::DeviceKind& kind : pw::device_kinds()) names.emplace_back(kind.name);
  return names;
}

/// Checks a table made by `tune`, and returns it in the format of the file.
Text table_text(const Text& draft) {
  return pw::route::print_table(pw::route::parse_table(draft, "the measured table"));
}

Text shape_class(uint64_t blocks, uint64_t block_bytes) {
  pw::Shape shape;
  shape.block_bytes = block_bytes;
  if (blocks > 1) {
    shape.dims = 1;
    shape.count[0] = blocks;
  }
  return pw::route::to_string(pw::route::shape_class(shape));
}

using Points = std::vector<std::tuple<uint64_t, double, double>>;  // bytes, microseconds, spread

std::vector<pw::route::Point> to_points(const Points& given) {
  std::vector<pw::route::Point> points;
  for (const auto& [bytes, microseconds, spread] : given) points.push_back({bytes, microseconds, spread});
  return points;
}

std::vector<pw::route::SplitCandidate> to_candidates(const std::vector<std::pair<Text, Points>>& given) {
  std::vector<pw::route::SplitCandidate> candidates;
  for (const auto& [path, points] : given)
    candidates.push_back({path, pw::route::CostLine(to_points(points))});
  return candidates;
}

using Parts = std::vector<std::pair<Text, uint32_t>>;  // path, share of 256

/// Returns the shares with which all paths would finish at the same time; empty if fewer than two are worth
/// using.
Parts propose_split(const std::vector<std::pair<Text, Points>>& lanes, uint64_t bytes) {
  Parts parts;
  if (const auto split = pw::route::propose(to_candidates(lanes), bytes)) {
    for (const pw::route::SplitPart& part : split->parts) parts.emplace_back(part.path, part.share);
  }
  return parts;
}

/// Returns the indices of the measured splits that a table should keep.
std::vector<size_t> worth_keeping(const std::vector<std::pair<Parts, Points>>& given,
                                  const std::vector<std::pair<Text, Points>>& lanes) {
  std::vector<pw::route::Trial> trials;
  for (const auto& [parts, points] : given) {
    pw::route::Trial trial;
    for (const auto& [path, share] : parts) trial.split.parts.push_back({path, static_cast<uint16_t>(share)});
    trial.points = to_points(points);
    trials.push_back(std::move(trial));
  }
  return pw::route::worth_keeping(trials, to_candidates(lanes));
}

}  // namespace

void bind_routes(nb::module_& module) {
  module.def("paths_for", &paths_for, nb::arg("context"), nb::arg("remote"), nb::arg("region"),
             nb::arg("op"));
  module.def("explain_for", &explain_for, nb::arg("context"), nb::arg("remote"), nb::arg("region"),
             nb::arg("op"), nb::arg("shape"));
  module.def(
      "set_staging_chunk_bytes",
      [](Context& context, uint64_t bytes) { pw::set_staging_chunk_bytes(context->get(), bytes); },
      nb::arg("context"), nb::arg("bytes"));
  module.def("devices", &devices);
  module.def("device_kinds", &device_kinds);
  module.def(
      "why_none", [](const Text& kind) { return pw::why_none(parse_device(kind, 0).kind); }, nb::arg("kind"));
  module.def("machine", &pw::machine);
  module.def("default_table_file", &pw::default_table_file);
  module.def("default_rules_file", &pw::default_rules_file);
  module.def(
      "check_paths",
      [](const Text& paths, const std::vector<Text>& known) {
        (void)pw::route::use_rule(paths, {known, pw::path_families()});
      },
      nb::arg("paths"), nb::arg("known"));
  module.def("table_text", &table_text, nb::arg("draft"));
  module.def("shape_class", &shape_class, nb::arg("blocks"), nb::arg("block_bytes"));
  module.def("propose_split", &propose_split, nb::arg("lanes"), nb::arg("bytes"));
  module.def("worth_keeping", &worth_keeping, nb::arg("trials"), nb::arg("lanes"));
  module.def(
      "config_value", [](const std::string& name) { return pw::setting_named(name).text(); },
      nb::arg("name"));
  module.def("config_home", &pw::config_home);
  module.def("cache_home", &pw::cache_home);
  module.def(
      "save_table",
      [](const Text& text, const Text& file) {
        pw::route::save_table(pw::route::parse_table(text, file), file);
      },
      nb::arg("text"), nb::arg("file"));
  module.def(
      "load_table", [](const Text& file) { return pw::route::print_table(pw::route::load_table(file)); },
      nb::arg("file"));
}

}  // namespace pwpy
