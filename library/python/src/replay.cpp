// Replays the steps of a trace, to find its critical path (peerway.trace.critical).
#include "trace/analysis/replay.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "core.h"

namespace pwpy {

namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span(const Column<T>& column) {
  return {column.data(), column.size()};
}

/// The replay, and the columns that it refers to.
struct Kept {
  std::vector<nb::object> columns;
  std::unique_ptr<pw::trace::Replay> replay;
};

template <typename T>
nb::object array(const std::vector<T>& values) {
  auto* kept = new std::vector<T>(values);
  const nb::capsule owner(kept, [](void* data) noexcept { delete static_cast<std::vector<T>*>(data); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::tuple path(const Kept& self) {
  std::vector<pw::trace::Stretch> path;
  {
    const nb::gil_scoped_release unlocked;
    path = self.replay->path();
  }
  std::vector<int32_t> step;
  std::vector<uint8_t> within;
  std::vector<int64_t> begin, end;
  for (const auto& stretch : path) {
    step.push_back(stretch.step);
    within.push_back(stretch.within);
    begin.push_back(stretch.begin);
    end.push_back(stretch.end);
  }
  return nb::make_tuple(array(step), array(within), array(begin), array(end));
}

}  // namespace

void bind_replay(nb::module_& module) {
  nb::class_<Kept>(module, "TraceReplay")
      .def(
          "__init__",
          [](Kept* self, Column<int64_t> begin, Column<int64_t> duration, Column<int32_t> part,
             Column<int32_t> before, Column<int64_t> lane, Column<int32_t> after, Column<int32_t> on,
             Column<int64_t> offset, Column<int32_t> meeting, Column<int32_t> awaits, int32_t parts) {
            const pw::trace::Steps steps{span(begin),   span(duration), span(part), span(before),
                                         span(lane),    span(after),    span(on),   span(offset),
                                         span(meeting), span(awaits),   parts};
            auto replay = std::make_unique<pw::trace::Replay>(steps);
            new (self)
                Kept{{nb::cast(begin), nb::cast(duration), nb::cast(part), nb::cast(before), nb::cast(lane),
                      nb::cast(after), nb::cast(on), nb::cast(offset), nb::cast(meeting), nb::cast(awaits)},
                     std::move(replay)};
          },
          nb::arg("begin"), nb::arg("duration"), nb::arg("part"), nb::arg("before"), nb::arg("lane"),
          nb::arg("after"), nb::arg("on"), nb::arg("offset"), nb::arg("meeting"), nb::arg("awaits"),
          nb::arg("parts"))
      .def("length",
           [](const Kept& self, const std::vector<double>& factor) {
             const nb::gil_scoped_release unlocked;
             return self.replay->length(factor);
           })
      .def("path", &path);
}

}  // namespace pwpy
