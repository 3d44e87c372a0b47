// Functions for `peerway trace`: regions of Python programs, and the clock of events.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>

#include "core.h"
#include "trace/operation.h"

namespace pwpy {

void bind_trace(nb::module_& module) {
  nb::class_<pw::trace::ProgramRegion>(module, "TraceRegion")
      .def("__init__", [](pw::trace::ProgramRegion* self,
                          const std::string& name) { new (self) pw::trace::ProgramRegion(name); })
      .def("end", &pw::trace::ProgramRegion::end);
  module.def("tracing", [] { return pw_trace_attach() != 0; });
  module.def("trace_clock", [] {
    pw_trace_writer writer{};
    writer.is_tsc = pw_trace_trusts_tsc();
    uint64_t ticks = 0, ns = 0;
    pw_trace_read_clocks(&writer, &ticks, &ns);
    return std::pair(ticks, ns);
  });
}

}  // namespace pwpy
