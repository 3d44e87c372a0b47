// Team for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "bytes.h"
#include "core.h"

namespace pwpy {
namespace {

Team create_team(int rank, int size, const nb::callable& broadcast) {
  watch_signals();
  const Calling calling;  // waits for the other ranks
  return {peerway::Team::create(rank, size,
                                [&](void* data, size_t bytes) {
                                  const nb::gil_scoped_acquire acquire;
                                  const nb::object view = nb::steal(PyMemoryView_FromMemory(
                                      static_cast<char*>(data), static_cast<Py_ssize_t>(bytes), PyBUF_WRITE));
                                  broadcast(view);
                                }),
          "team"};
}

nb::list all_gather(Team& team, const nb::bytes& mine, Seconds seconds) {
  std::vector<peerway::Key> parts;
  {
    const Calling calling;
    parts = team->all_gather(as_span(mine), timeout(seconds));
  }
  nb::list list;
  for (const auto& part : parts) list.append(to_bytes(part));
  return list;
}

}  // namespace

void bind_team(nb::module_& module) {
  nb::class_<Team>(module, "Team")
      .def_static("from_launcher",
                  [] {
                    watch_signals();
                    const Calling calling;
                    return Team(peerway::Team::from_launcher(), "team");
                  })
      .def_static("create", &create_team, nb::arg("rank"), nb::arg("size"), nb::arg("broadcast"))
      .def_prop_ro("rank", [](Team& team) { return team->rank(); })
      .def_prop_ro("size", [](Team& team) { return team->size(); })
      .def_prop_ro("closed", &Team::closed)
      .def("lost", [](Team& team, int rank) { return team->lost(rank); })
      .def("all_gather", &all_gather, nb::arg("mine"), nb::arg("timeout") = nb::none())
      .def(
          "barrier",
          [](Team& team, Seconds seconds) {
            team->barrier(timeout(seconds));
            throw_if_interrupted();
          },
          nb::arg("timeout") = nb::none(), Release())
      .def("close", &close_interruptibly<Team>, Release());
}

}  // namespace pwpy
