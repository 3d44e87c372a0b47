// Collectives for Python: a thin layer over pw_collective_create. library/python/peerway/collective.py adds
// the convenience.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/exchange.h"
#include "collective/explain.h"
#include "context/handle.h"
#include "core.h"

namespace pwpy {
namespace {

using Counts = std::optional<std::vector<uint64_t>>;
using Ranks = std::optional<std::vector<int>>;

/// The arguments of a collective that are numbers; Python's dataclass of the same name.
struct Numbers {
  int kind, element, reduction, order, root;
  uint64_t count;
  Counts counts, receive_counts;
  Ranks ranks;
};

pw_collective collective_of(const Numbers& numbers) {
  pw_collective collective{};
  collective.kind = static_cast<pw_collective_kind>(numbers.kind);
  collective.element = static_cast<pw_element>(numbers.element);
  collective.reduction = static_cast<pw_reduction>(numbers.reduction);
  collective.order = static_cast<pw_order>(numbers.order);
  collective.root = numbers.root;
  collective.count = numbers.count;
  if (numbers.counts) {
    collective.counts = numbers.counts->data();
    collective.part_count = numbers.counts->size();
  }
  if (numbers.receive_counts) {
    collective.receive_counts = numbers.receive_counts->data();
    collective.part_count = numbers.receive_counts->size();
  }
  if (numbers.ranks) {
    collective.ranks = numbers.ranks->data();
    collective.rank_count = numbers.ranks->size();
  }
  return collective;
}

Plan make_collective(Context& context, const Numbers& numbers, Region* to, Region* from, uint64_t from_offset,
                     const std::string& kind, int32_t index) {
  pw_collective collective = collective_of(numbers);
  collective.device = parse_device(kind, index);
  const auto to_held = to == nullptr ? nullptr : to->hold("a collective");
  const auto from_held = from == nullptr ? nullptr : from->hold("a collective");
  if (to_held != nullptr) collective.to = to_held->get();
  if (from_held != nullptr) collective.from = from_held->get();
  collective.from_offset = from_offset;
  const auto held = context.hold("a collective");
  const Calling calling;  // waits for the other ranks
  pw_plan* plan = nullptr;
  peerway::check(static_cast<pw_status>(pw_collective_create(held->get(), &collective, &plan)));
  return {peerway::Plan(plan), "collective"};
}

/// Takes part in a collective only to say that this rank cannot make it. Throws the error that all ranks get.
void refuse_collective(Context& context, const Ranks& ranks, const std::string& text) {
  const auto held = context.hold("a collective");
  const Calling calling;
  pw::Team& team = held->get()->context->team();
  const auto group =
      pw::collective::group_of(team, ranks ? ranks->data() : nullptr, ranks ? ranks->size() : 0);
  pw::collective::run_exchange_of(team, group,
                                  [&](pw::Exchange&) { throw pw::Error(PW_INVALID_ARGUMENT, text); });
}

using MethodTimes = std::vector<std::pair<std::string, double>>;  // methods, with microseconds

/// For each size in bytes the methods, the cheapest first.
std::vector<std::pair<uint64_t, MethodTimes>> collective_estimates(Context& context, Remote& remote,
                                                                   Region& region, int kind, int order,
                                                                   uint32_t ranks) {
  std::vector<std::pair<uint64_t, MethodTimes>> all;
  for (const auto& [bytes, estimates] : pw::collective::estimates_for(
           context->get(), remote->get(), region->get(), static_cast<pw_collective_kind>(kind),
           static_cast<pw_order>(order), ranks)) {
    MethodTimes methods;
    for (const pw::collective::Estimate& estimate : estimates)
      methods.emplace_back(name_of(estimate.method), estimate.us);
    all.emplace_back(bytes, std::move(methods));
  }
  return all;
}

}  // namespace

void bind_collective(nb::module_& module) {
  nb::class_<Numbers>(module, "CollectiveNumbers")
      .def(nb::init<int, int, int, int, int, uint64_t, Counts, Counts, Ranks>(), nb::arg("kind"),
           nb::arg("element"), nb::arg("reduction"), nb::arg("order"), nb::arg("root"), nb::arg("count"),
           nb::arg("counts").none(), nb::arg("receive_counts").none(), nb::arg("ranks").none());
  module.def("make_collective", &make_collective, nb::arg("context"), nb::arg("numbers"),
             nb::arg("to").none(), nb::arg("source").none(), nb::arg("source_offset"), nb::arg("kind"),
             nb::arg("index"), nb::keep_alive<0, 1>());
  module.def("collective_estimates", &collective_estimates, nb::arg("context"), nb::arg("remote"),
             nb::arg("region"), nb::arg("kind"), nb::arg("order"), nb::arg("ranks"));
  module.def("refuse_collective", &refuse_collective, nb::arg("context"), nb::arg("ranks").none(),
             nb::arg("text"));
}

}  // namespace pwpy
