// Region, Remote, Signal and Block for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <vector>

#include "bytes.h"
#include "context/inspect.h"
#include "core.h"

namespace pwpy {
namespace {

/// Keeps memory from allocate() alive after its region and context.
struct Memory {
  explicit Memory(std::shared_ptr<void> memory) : held(std::move(memory)) {}
  Memory(Memory&&) noexcept = default;
  ~Memory() {
    if (held == nullptr) return;
    if (pw::in_forked_child()) {  // the memory is the parent's; this process leaks its copy of the pointer
      static_cast<void>(new (std::nothrow) std::shared_ptr<void>(std::move(held)));
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

}  // namespace

void bind_memory(nb::module_& module) {
  static_cast<void>(nb::class_<Memory>(module, "Memory"));
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

}  // namespace pwpy
