// Streams, plans and halos for Python: a thin layer with one method for each call of plan.hpp and halo.hpp.
// library/python/peerway/plan.py and halo.py add the convenience.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "core.h"
#include "plan/handle.h"

namespace pwpy {
namespace {

using Seconds = std::optional<double>;
using Release = nb::call_guard<Calling>;

/// Any stream: kind and index of its device, and its handle.
using AnyStream = std::tuple<std::string, int32_t, uintptr_t>;

pw_stream as_stream(const AnyStream& stream) {
  const auto& [kind, index, queue] = stream;
  return {parse_device(kind, index), reinterpret_cast<void*>(queue)};
}

/// The handle that a kernel takes by value.
template <typename Handle>
nb::bytes bytes_of(const Handle& handle) {
  return nb::bytes(&handle, sizeof handle);
}

/// The stream whose call this thread runs. A wait for that stream would never end there.
thread_local void* calling_stream = nullptr;

void refuse_inside(const Stream& stream, const char* call) {
  if (calling_stream != nullptr && stream->get().queue == calling_stream)
    throw peerway::Error(peerway::Status::invalid_argument,
                         std::string("peerway: ") + call +
                             " of a stream from a call in that very stream would wait for itself; do it from "
                             "another thread.");
}

/// Runs a Python callable on a thread of the library; Python reports exceptions that it raises like those in
/// destructors.
void call_in(Stream& stream, nb::callable body) {
  const std::shared_ptr<nb::callable> held(new nb::callable(std::move(body)), [](nb::callable* last) {
    const nb::gil_scoped_acquire acquire;
    delete last;
  });
  released([&] {
    return stream->call([held, queue = stream->get().queue] {
      const nb::gil_scoped_acquire acquire;
      calling_stream = queue;
      try {
        (*held)();
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("peerway.Stream.call");
      }
      calling_stream = nullptr;
    });
  });
}

void bind_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def_prop_ro("device", [](Stream& stream) { return device_name(stream->device()); })
      .def_prop_ro("queue", [](Stream& stream) { return reinterpret_cast<uintptr_t>(stream->get().queue); })
      .def_prop_ro("closed", &Stream::closed)
      .def("call", &call_in, nb::arg("body"))
      .def(
          "wait",
          [](Stream& stream, Seconds seconds) {
            refuse_inside(stream, "a wait");
            released([&, limit = timeout(seconds)] { return stream->wait(limit); });
          },
          nb::arg("timeout") = nb::none())
      .def(
          "close",
          [](Stream& stream) {
            // First waits interruptibly for the work left in the stream; if that fails the stream stays open.
            if (!stream.closed()) {
              refuse_inside(stream, "the end");
              static_cast<void>(stream->wait());
            }
            throw_if_interrupted();
            stream.close();
          },
          Release());
}

void put(PlanBuilder& plan, Remote& to, const pw_block& to_block, Region& from, const pw_block& from_block,
         Remote* signal, uint64_t by) {
  const auto here = from.hold("put");
  const auto there = to.hold("put");
  if (signal == nullptr) {
    plan->put(there->block(to_block), here->block(from_block));
  } else {
    plan->put(there->block(to_block), here->block(from_block), peerway::notify(*signal->hold("put"), by));
  }
}

void bind_builder(nb::module_& module) {
  nb::class_<PlanBuilder>(module, "PlanBuilder")
      .def_prop_ro("closed", &PlanBuilder::closed)
      .def("put", &put, nb::arg("to"), nb::arg("to_block"), nb::arg("source"), nb::arg("source_block"),
           nb::arg("notify").none() = nb::none(), nb::arg("by") = 1)
      .def(
          "get",
          [](PlanBuilder& plan, Region& to, const pw_block& to_block, Remote& from,
             const pw_block& from_block) {
            const auto here = to.hold("get");
            const auto there = from.hold("get");
            plan->get(here->block(to_block), there->block(from_block));
          },
          nb::arg("to"), nb::arg("to_block"), nb::arg("source"), nb::arg("source_block"))
      .def(
          "notify",
          [](PlanBuilder& plan, Remote& signal, uint64_t by) {
            plan->notify(peerway::notify(*signal.hold("notify"), by));
          },
          nb::arg("signal"), nb::arg("by") = 1)
      .def(
          "after",
          [](PlanBuilder& plan, Signal& signal, uint64_t lead, uint64_t by) {
            plan->after(*signal.hold("after"), lead, by);
          },
          nb::arg("signal"), nb::arg("lead") = 0, nb::arg("by") = 1)
      .def(
          "wait",
          [](PlanBuilder& plan, Signal& signal, uint64_t by) { plan->wait(*signal.hold("wait"), by); },
          nb::arg("signal"), nb::arg("by") = 1)
      .def(
          "send",
          [](PlanBuilder& plan, int rank, int tag, Region& from, const pw_block& block) {
            plan->send(rank, tag, from->block(block));
          },
          nb::arg("rank"), nb::arg("tag"), nb::arg("source"), nb::arg("block"))
      .def(
          "receive",
          [](PlanBuilder& plan, int rank, int tag, Region& to, const pw_block& block) {
            plan->receive(rank, tag, to->block(block));
          },
          nb::arg("rank"), nb::arg("tag"), nb::arg("to"), nb::arg("block"))
      .def(
          "prepare",
          [](PlanBuilder& plan, bool alone) {
            return Plan(alone ? plan->prepare_alone() : plan->prepare(), "plan");
          },
          nb::arg("alone"), nb::keep_alive<0, 1>(), Release())
      .def(
          "prepare_among",
          [](PlanBuilder& plan, const std::vector<int>& ranks) {
            return Plan(plan->prepare_among(ranks), "plan");
          },
          nb::arg("ranks"), nb::keep_alive<0, 1>(), Release())
      .def("close", &PlanBuilder::close, Release());
}

/// Returns "ok", or why the plan was cancelled and the message.
std::pair<std::string, std::string> status_of(Plan& plan) {
  const peerway::Status status = plan->status();
  return {to_string(status), status == peerway::Status::ok ? std::string() : peerway::error_message()};
}

/// Where to, where from, and how many bytes: none if there is nothing to copy.
using AnyCopy = std::tuple<uintptr_t, uintptr_t, uint64_t>;

pw::FlatCopy as_copy(const AnyCopy& copy) {
  const auto& [to, from, bytes] = copy;
  return {reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes};
}

void copy_on_host(const pw::FlatCopy& copy) {
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
}

/// A start and its finish between two copies on the host.
void run_between(Plan& plan, const AnyCopy& before, const AnyCopy& after, Seconds seconds) {
  const auto held = plan.hold();
  released([&, limit = timeout(seconds)] {
    copy_on_host(as_copy(before));
    peerway::Status status = held->start();
    if (status == peerway::Status::ok) status = held->finish(limit);
    if (status == peerway::Status::ok) copy_on_host(as_copy(after));
    return status;
  });
}

/// The same in a stream of the plan's device.
void run_between_on(Plan& plan, uintptr_t queue, const AnyCopy& before, const AnyCopy& after) {
  const auto held = plan.hold();
  released([&] {
    return static_cast<peerway::Status>(pw::catch_errors([&] {
      return held->get()->plan->enqueue_between(reinterpret_cast<void*>(queue), as_copy(before),
                                                as_copy(after));
    }));
  });
}

/// Throws the error that cancelled one of the plans, if one was: one call for all, as each would release the
/// GIL.
void check_plans(const std::vector<Plan*>& plans) {
  std::vector<std::shared_ptr<peerway::Plan>> held;
  held.reserve(plans.size());
  for (const Plan* plan : plans) held.push_back(plan->hold());
  released([&] {
    for (const auto& plan : held)
      if (const peerway::Status status = plan->status(); status != peerway::Status::ok) return status;
    return peerway::Status::ok;
  });
}

void bind_prepared(nb::module_& module) {
  nb::class_<Plan>(module, "Plan")
      .def_prop_ro("closed", &Plan::closed)
      .def("start", [](Plan& plan) { released([&] { return plan->start(); }); })
      .def(
          "start_request", [](Plan& plan) { return Request(plan->start_request(), "request"); },
          nb::keep_alive<0, 1>(), Release())
      .def(
          "finish",
          [](Plan& plan, Seconds seconds) {
            released([&, limit = timeout(seconds)] { return plan->finish(limit); });
          },
          nb::arg("timeout") = nb::none())
      .def(
          "start_on",
          [](Plan& plan, const AnyStream& stream) {
            released([&, on = as_stream(stream)] { return plan->start(on); });
          },
          nb::arg("stream"))
      .def(
          "finish_on",
          [](Plan& plan, const AnyStream& stream) {
            released([&, on = as_stream(stream)] { return plan->finish(on); });
          },
          nb::arg("stream"))
      .def(
          "run_on",
          [](Plan& plan, const AnyStream& stream) {
            released([&, on = as_stream(stream)] { return plan->run(on); });
          },
          nb::arg("stream"))
      .def(
          "run_on_if",
          [](Plan& plan, const AnyStream& stream, uintptr_t word, int value) {
            released([&, on = as_stream(stream)] {
              return plan->run_if(on, reinterpret_cast<const int*>(word), value);
            });
          },
          nb::arg("stream"), nb::arg("word"), nb::arg("value"))
      .def("run_between", &run_between, nb::arg("before"), nb::arg("after"), nb::arg("timeout").none())
      .def("run_between_on", &run_between_on, nb::arg("queue"), nb::arg("before"), nb::arg("after"))
      .def(
          "set_timeout", [](Plan& plan, Seconds seconds) { plan->set_timeout(timeout(seconds)); },
          nb::arg("timeout").none())
      .def(
          "leave_room", [](Plan& plan, bool yes) { plan->leave_room(yes); }, nb::arg("yes"))
      .def("status", &status_of)
      .def("check", [](Plan& plan) { released([&] { return plan->status(); }); })
      .def("describe", [](Plan& plan) { return plan->describe(); })
      .def("handle", [](Plan& plan) { return bytes_of(plan->handle()); })
      .def("all_reduce_handle", [](Plan& plan) { return bytes_of(plan->all_reduce_handle()); })
      .def(
          "lane",
          [](Plan& plan, bool sends, int rank, int tag) {
            return bytes_of(sends ? plan->send_lane(rank, tag) : plan->receive_lane(rank, tag));
          },
          nb::arg("sends"), nb::arg("rank"), nb::arg("tag"))
      .def("close", &Plan::close, Release());
}

void bind_fifo(nb::module_& module) {
  nb::class_<Fifo>(module, "Fifo")
      .def_prop_ro("closed", &Fifo::closed)
      .def("handle", [](Fifo& fifo) { return bytes_of(fifo->handle()); })
      .def("check", [](Fifo& fifo) { released([&] { return fifo->status(); }); })
      .def("close", &Fifo::close, Release());
}

Fifo make_fifo(Context& context, const std::vector<Remote*>& remotes, const std::vector<Region*>& regions,
               const std::string& kind, int32_t index, uint32_t entries) {
  std::vector<std::shared_ptr<peerway::Region>> near;
  std::vector<std::shared_ptr<peerway::Remote>> far;
  for (Region* region : regions) near.push_back(region->hold());
  for (Remote* remote : remotes) far.push_back(remote->hold());
  std::vector<std::reference_wrapper<const peerway::Region>> from;
  std::vector<std::reference_wrapper<const peerway::Remote>> to;
  for (const auto& region : near) from.emplace_back(*region);
  for (const auto& remote : far) to.emplace_back(*remote);
  return {context->fifo(to, from, parse_device(kind, index), entries), "FIFO"};
}

/// extent, grid dimension, periodic, shadow below and above, width below and above, stride.
using Dim = std::tuple<uint64_t, int, bool, uint64_t, uint64_t, uint64_t, uint64_t, int64_t>;

/// A region (None if the rank owns nothing), the offset in it, the bytes of an element, the dimensions.
using Array = std::tuple<Region*, uint64_t, uint64_t, std::vector<Dim>>;

peerway::Array as_array(const Array& array, std::vector<std::shared_ptr<peerway::Region>>& held) {
  const auto& [region, offset, element_bytes, given] = array;
  std::vector<peerway::ArrayDim> dims;
  for (const auto& [extent, over, periodic, below, above, width_below, width_above, stride] : given) {
    dims.push_back({.extent = extent,
                    .grid_dim = over,
                    .periodic = periodic,
                    .shadow = {below, above},
                    .width = peerway::Layers{width_below, width_above},
                    .stride = stride});
  }
  if (region == nullptr) return {element_bytes, dims};
  held.push_back(region->hold());
  return {*held.back(), element_bytes, dims, offset};
}

Plan make_halo(Context& context, const std::vector<Array>& arrays, const std::vector<uint32_t>& grid,
               bool corners) {
  std::vector<std::shared_ptr<peerway::Region>> held;
  std::vector<peerway::Array> list;
  for (const Array& array : arrays) list.push_back(as_array(array, held));
  const Calling calling;  // waits for the other ranks
  return {context->halo(list, peerway::Grid(std::span(grid)),
                        corners ? peerway::HaloParts::corners : peerway::HaloParts::faces),
          "halo"};
}

}  // namespace

void bind_plan(nb::module_& module) {
  module.attr("MAX_ARRAY_DIMS") = PW_MAX_ARRAY_DIMS;
  bind_stream(module);
  bind_builder(module);
  bind_prepared(module);
  bind_fifo(module);
  module.def("check_plans", &check_plans, nb::arg("plans"));
  module.def(
      "make_stream",
      [](Context& context, const std::string& kind, int32_t index) {
        return Stream(context->stream(parse_device(kind, index)), "stream");
      },
      nb::arg("context"), nb::arg("kind"), nb::arg("index"), nb::keep_alive<0, 1>());
  module.def(
      "make_plan",
      [](Context& context, const std::string& kind, int32_t index) {
        return PlanBuilder(context->plan(parse_device(kind, index)), "builder of a plan");
      },
      nb::arg("context"), nb::arg("kind"), nb::arg("index"), nb::keep_alive<0, 1>());
  module.def("make_fifo", &make_fifo, nb::arg("context"), nb::arg("remotes"), nb::arg("regions"),
             nb::arg("kind"), nb::arg("index"), nb::arg("entries"), nb::keep_alive<0, 1>());
  module.def("make_halo", &make_halo, nb::arg("context"), nb::arg("arrays"), nb::arg("grid"),
             nb::arg("corners"), nb::keep_alive<0, 1>());
  module.def(
      "grid_block",
      [](uint64_t extent, uint32_t parts, uint32_t index) {
        const peerway::Part part = peerway::block_of(extent, parts, index);
        return std::pair(part.first, part.count);
      },
      nb::arg("extent"), nb::arg("parts"), nb::arg("index"));
}

}  // namespace pwpy
