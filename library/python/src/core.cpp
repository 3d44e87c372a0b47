// Team, Context, Region, Remote and Signal for Python: a thin layer with one method for each call of
// peerway.hpp. The GIL is released wherever a call may wait or move bytes. library/python/peerway adds the
// convenience.
#include "core.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "context/inspect.h"
#include "device/kinds.h"
#include "peerway/peerway.hpp"

namespace pwpy {

pw_device parse_device(const std::string& kind, int32_t index) {
  std::string known;
  const auto kinds = pw::device_kinds();
  for (size_t number = 0; number < kinds.size(); ++number) {
    const std::string name(kinds[number].name);
    if (name == kind) return {static_cast<pw_device_kind>(number), number == PW_HOST ? 0 : index};
    known += number == PW_HOST ? "'" + name + "'" : ", '" + name + "' and '" + name + ":N'";
  }
  throw peerway::Error(peerway::Status::invalid_argument,
                       "peerway: unknown device '" + kind + "'; there are " + known + ".");
}

std::string shown(const std::string& kind, std::initializer_list<std::pair<const char*, nb::object>> fields) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += (text.empty() ? "" : ", ") + (name + ("=" + std::string(nb::repr(value).c_str())));
  return kind + "(" + text + ")";
}

std::string device_name(pw_device device) { return pw::to_string({device.kind, device.index}); }

namespace {

using Seconds = std::optional<double>;
using Release = nb::call_guard<Calling>;

// Closing always completes; an exception that a signal handler raised meanwhile is thrown afterwards.
template <typename Owner>
void close_interruptibly(Owner& owner) {
  owner.close();
  throw_if_interrupted();
}

nb::bytes to_bytes(const peerway::Key& key) { return nb::bytes(key.data(), key.size()); }

/// Returns a handle for kernels as the bytes that they take by value.
template <typename Handle>
nb::bytes handle_bytes(const Handle& handle) {
  return nb::bytes(&handle, sizeof handle);
}

std::span<const std::byte> as_span(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

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

/// Keeps memory from allocate() alive after its region and context.
struct Memory {
  explicit Memory(std::shared_ptr<void> memory) : held(std::move(memory)) {}
  Memory(Memory&&) noexcept = default;
  ~Memory() {
    if (held == nullptr) return;
    if (pw::in_forked_child()) {  // the memory is the parent's; this process leaks its copy of the pointer
      static_cast<void>(new std::shared_ptr<void>(std::move(held)));
      return;
    }
    const Unlocked unlocked;
    held.reset();
  }
  std::shared_ptr<void> held;
};

/// Returns None if the caller owns the memory.
nb::object memory_of(Region& region) {
  auto held = pw::memory_of(region->get());
  return held == nullptr ? nb::none() : nb::cast(Memory(std::move(held)));
}

/// Formats a block as the Python expression that makes it.
std::string block_text(const pw_block& block) {
  nb::list counts, strides;
  for (uint32_t d = 0; d < block.dims; ++d) {
    counts.append(block.count[d]);
    strides.append(block.stride[d]);
  }
  return shown("Block", {{"counts", nb::tuple(counts)},
                         {"strides", nb::tuple(strides)},
                         {"block_bytes", nb::int_(block.block_bytes)},
                         {"offset", nb::int_(block.offset)}});
}

void bind_memory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory");
  nb::class_<Region>(module, "Region")
      .def_prop_ro("memory", &memory_of)
      .def_prop_ro("address", [](Region& region) { return reinterpret_cast<uintptr_t>(region->address()); })
      .def_prop_ro("bytes", [](Region& region) { return region->bytes(); })
      .def_prop_ro("read_only", [](Region& region) { return region->read_only(); })
      .def_prop_ro("device", [](Region& region) { return device_name(region->device()); })
      .def_prop_ro("closed", &Region::closed)
      .def("key", [](Region& region) { return to_bytes(region.hold("key")->key()); })
      .def("close", &Region::close, Release());
  nb::class_<Remote>(module, "Remote")
      .def_prop_ro("rank", [](Remote& remote) { return remote->rank(); })
      .def_prop_ro("bytes", [](Remote& remote) { return remote->bytes(); })
      .def_prop_ro("read_only", [](Remote& remote) { return remote->read_only(); })
      .def_prop_ro("closed", &Remote::closed)
      .def(
          "handle",
          [](Remote& remote, const std::string& kind, int32_t index) {
            return handle_bytes(remote->handle(parse_device(kind, index)));
          },
          nb::arg("kind"), nb::arg("index"))
      .def(
          "notify_handle",
          [](Remote& remote, const std::string& kind, int32_t index) {
            return handle_bytes(remote->notify_handle(parse_device(kind, index)));
          },
          nb::arg("kind"), nb::arg("index"))
      .def(
          "release_notify_handle", [](Remote& remote) { remote->release_notify_handle(); }, Release())
      .def("close", &Remote::close, Release());
  nb::class_<Signal>(module, "Signal")
      .def_prop_ro("value", [](Signal& signal) { return signal->value(); })
      .def_prop_ro("closed", &Signal::closed)
      .def("key", [](Signal& signal) { return to_bytes(signal.hold("key")->key()); })
      .def(
          "handle",
          [](Signal& signal, const std::string& kind, int32_t index, Seconds seconds) {
            return handle_bytes(signal->handle(parse_device(kind, index), timeout(seconds)));
          },
          nb::arg("kind"), nb::arg("index"), nb::arg("timeout") = nb::none())
      .def("check", [](Signal& signal) { released([&] { return signal->status(); }); })
      .def(
          "wait",
          [](Signal& signal, uint64_t value, Seconds seconds) {
            released([&, limit = timeout(seconds)] { return signal->wait(value, limit); });
          },
          nb::arg("value"), nb::arg("timeout") = nb::none())
      .def("close", &Signal::close, Release());
  nb::class_<pw_block>(module, "Block")
      .def(
          "__init__",
          [](pw_block* block, const std::vector<uint64_t>& counts, const std::vector<int64_t>& strides,
             uint64_t block_bytes, uint64_t offset) {
            new (block) pw_block(peerway::make_block(counts, strides, block_bytes, offset));
          },
          nb::arg("counts"), nb::arg("strides"), nb::arg("block_bytes"), nb::arg("offset") = 0)
      .def("__repr__", &block_text);
}

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

/// Returns the address and size of an array that supports only DLPack.
std::pair<uintptr_t, uint64_t> dlpack_span(const nb::ndarray<nb::c_contig>& array) {
  return {reinterpret_cast<uintptr_t>(array.data()), array.nbytes()};
}

/// Returns the address, shape, strides in bytes and element size of an array that supports only DLPack.
std::tuple<uintptr_t, std::vector<int64_t>, std::vector<int64_t>, int64_t> dlpack_layout(
    const nb::ndarray<>& array) {
  const int64_t item = (array.dtype().bits * array.dtype().lanes + 7) / 8;
  std::vector<int64_t> shape, strides;
  for (size_t d = 0; d < array.ndim(); ++d) {
    shape.push_back(static_cast<int64_t>(array.shape(d)));
    strides.push_back(array.stride(d) * item);
  }
  return {reinterpret_cast<uintptr_t>(array.data()), shape, strides, item};
}

/// Returns a DLPack view of CUDA memory as bytes; the view keeps `owner` alive.
nb::ndarray<nb::array_api, uint8_t> cuda_bytes(uintptr_t address, uint64_t bytes, int32_t device,
                                               nb::object owner) {
  return {reinterpret_cast<uint8_t*>(address),
          {static_cast<size_t>(bytes)},
          owner,
          {},
          nb::dtype<uint8_t>(),
          nb::device::cuda::value,
          device};
}

}  // namespace

void bind_core(nb::module_& module) {
  module.attr("ANY_RANK") = PW_ANY_RANK;
  module.attr("MAX_DIMS") = PW_MAX_DIMS;
  module.def("version", &pw_version);
  module.def("dlpack_span", &dlpack_span, nb::arg("array"));
  module.def("dlpack_layout", &dlpack_layout, nb::arg("array"));
  module.def("cuda_bytes", &cuda_bytes, nb::arg("address"), nb::arg("bytes"), nb::arg("device"),
             nb::arg("owner"));
  bind_team(module);
  bind_memory(module);
  bind_context(module);
}

}  // namespace pwpy
