// Context for Python: puts, gets and notifications, which need no plan.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bytes.h"
#include "core.h"

namespace pwpy {
namespace {

/// Makes a region whose name in errors has its size and device.
Region region_of(peerway::Region&& region) {
  std::string name =
      "region (" + std::to_string(region.bytes()) + " bytes, " + device_name(region.device()) + ")";
  return {std::move(region), std::move(name)};
}

/// Makes a remote whose name in errors has its size and rank.
Remote remote_of(peerway::Remote&& remote) {
  std::string name =
      "remote (" + std::to_string(remote.bytes()) + " bytes, rank " + std::to_string(remote.rank()) + ")";
  return {std::move(remote), std::move(name)};
}

void put(Context& context, Remote& to, const pw_block& to_block, Region& from, const pw_block& from_block,
         Remote* signal, uint64_t by) {
  released([&] {
    const auto here = from.hold("put");
    const auto there = to.hold("put");
    if (signal == nullptr) return context->put(there->block(to_block), here->block(from_block));
    const auto notified = signal->hold("put");
    return context->put(there->block(to_block), here->block(from_block), peerway::notify(*notified, by));
  });
}

Request start_put(Context& context, Remote& to, const pw_block& to_block, Region& from,
                  const pw_block& from_block, Remote* signal, uint64_t by) {
  const auto here = from.hold("start_put");
  const auto there = to.hold("start_put");
  if (signal == nullptr)
    return {context->start_put(there->block(to_block), here->block(from_block)), "request"};
  return {context->start_put(there->block(to_block), here->block(from_block),
                             peerway::notify(*signal->hold("start_put"), by)),
          "request"};
}

}  // namespace

void bind_context(nb::module_& module) {
  nb::class_<Context>(module, "Context")
      .def(
          "__init__",
          [](Context* self, Team& team) {
            watch_signals();
            const Calling calling;
            new (self) Context(peerway::Context(*team.hold()), "context");
          },
          nb::arg("team"), nb::keep_alive<1, 2>())
      .def_prop_ro("closed", &Context::closed)
      .def(
          "use", [](Context& context, const std::string& paths) { context->use(paths); }, nb::arg("paths"))
      .def_prop_rw(
          "blocking",
          [](Context& context) { return context->wait_policy() == peerway::WaitPolicy::blocking; },
          [](Context& context, bool blocking) {
            context->set_wait_policy(blocking ? peerway::WaitPolicy::blocking
                                              : peerway::WaitPolicy::busy_poll);
          })
      .def(
          "allocate",
          [](Context& context, uint64_t bytes, const std::string& kind, int32_t index) {
            return region_of(context->allocate(parse_device(kind, index), bytes));
          },
          nb::arg("bytes"), nb::arg("kind"), nb::arg("index"), nb::keep_alive<0, 1>(), Release())
      .def(
          "register",
          [](Context& context, uintptr_t address, uint64_t bytes, bool read_only) {
            auto* const memory = reinterpret_cast<void*>(address);
            return region_of(read_only ? context->register_memory(static_cast<const void*>(memory), bytes)
                                       : context->register_memory(memory, bytes));
          },
          nb::arg("address"), nb::arg("bytes"), nb::arg("read_only") = false, nb::keep_alive<0, 1>(),
          Release())
      .def(
          "import_key",
          [](Context& context, const nb::bytes& key) { return remote_of(context->import(as_span(key))); },
          nb::arg("key"), nb::keep_alive<0, 1>())
      .def(
          "signal",
          [](Context& context, int sender, const std::string& kind, int32_t index) {
            return Signal(context->signal(sender, parse_device(kind, index)), "signal");
          },
          nb::arg("sender"), nb::arg("kind") = "host", nb::arg("index") = -1, nb::keep_alive<0, 1>(),
          Release())
      .def("put", &put, nb::arg("to"), nb::arg("to_block"), nb::arg("source"), nb::arg("source_block"),
           nb::arg("notify").none() = nb::none(), nb::arg("by") = 1)
      .def(
          "get",
          [](Context& context, Region& to, const pw_block& to_block, Remote& from,
             const pw_block& from_block) {
            released([&] {
              const auto here = to.hold("get");
              const auto there = from.hold("get");
              return context->get(here->block(to_block), there->block(from_block));
            });
          },
          nb::arg("to"), nb::arg("to_block"), nb::arg("source"), nb::arg("source_block"))
      .def(
          "notify",
          [](Context& context, Remote& signal, uint64_t by) {
            released([&] {
              const auto notified = signal.hold("notify");
              return context->notify(peerway::notify(*notified, by));
            });
          },
          nb::arg("signal"), nb::arg("by") = 1)
      .def("start_put", &start_put, nb::arg("to"), nb::arg("to_block"), nb::arg("source"),
           nb::arg("source_block"), nb::arg("notify").none() = nb::none(), nb::arg("by") = 1,
           nb::keep_alive<0, 1>(), Release())
      .def(
          "start_get",
          [](Context& context, Region& to, const pw_block& to_block, Remote& from,
             const pw_block& from_block) {
            const auto here = to.hold("start_get");
            const auto there = from.hold("start_get");
            return Request(context->start_get(here->block(to_block), there->block(from_block)), "request");
          },
          nb::arg("to"), nb::arg("to_block"), nb::arg("source"), nb::arg("source_block"),
          nb::keep_alive<0, 1>(), Release())
      .def(
          "start_notify",
          [](Context& context, Remote& signal, uint64_t by) {
            return Request(context->start_notify(peerway::notify(*signal.hold("start_notify"), by)),
                           "request");
          },
          nb::arg("signal"), nb::arg("by") = 1, nb::keep_alive<0, 1>(), Release())
      .def(
          "start_flush",
          [](Context& context, int rank) { return Request(context->start_flush(rank), "request"); },
          nb::arg("rank") = PW_ANY_RANK, nb::keep_alive<0, 1>(), Release())
      .def(
          "flush",
          [](Context& context, int rank, Seconds seconds) {
            released([&, limit = timeout(seconds)] { return context->flush(rank, limit); });
          },
          nb::arg("rank") = PW_ANY_RANK, nb::arg("timeout") = nb::none())
      .def(
          "end_waits", [](Context& context) { context->close(); }, Release())
      .def("close", &close_interruptibly<Context>, Release());
}

}  // namespace pwpy
