// The timed loops of plans (library/src/bench/plans.h, async.h) for Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bench/async.h"
#include "bench/data.h"
#include "bench/kernel_loop.h"
#include "bench/plans.h"
#include "bench_samples.h"
#include "core.h"

namespace pwpy {
namespace {

using pw::bench::AsyncPingPong;
using pw::bench::Ends;
using pw::bench::InKernel;
using pw::bench::KernelLoop;
using pw::bench::Pair;
using pw::bench::PlanLoop;
using pw::bench::Trip;
using Seconds = std::optional<double>;

Trip trip_of(const std::string& test, const Ends& ends, const pw_block& block) {
  if (test == "exchange") return pw::bench::exchange_trip(ends, block);
  if (test == "sendrecv") return pw::bench::sendrecv_trip(ends, block);
  if (test == "latency") return pw::bench::latency_trip(ends, block);
  if (test == "message") return pw::bench::message_trip(ends, block);
  throw std::invalid_argument("there is no loop of plans called '" + test + "'");
}

std::unique_ptr<PlanLoop> pair_loop(Pair& pair, const std::string& test, const pw_block& block,
                                    const std::string& start, uint64_t batch, Seconds seconds) {
  const nb::gil_scoped_release release;
  const Ends& ends = pair.ends();
  return std::make_unique<PlanLoop>(ends.context, pw_region_device(ends.source), trip_of(test, ends, block),
                                    pw::bench::start_of(start), batch, pw_timeout(seconds));
}

std::unique_ptr<KernelLoop> kernel_loop(Pair& pair, const std::string& test, const pw_block& block,
                                        bool packets, Seconds seconds) {
  const nb::gil_scoped_release release;
  const Ends& ends = pair.ends();
  return std::make_unique<KernelLoop>(ends, trip_of(test, ends, block), block.block_bytes,
                                      packets             ? InKernel::packets
                                      : test == "message" ? InKernel::messages
                                                          : InKernel::one_sided,
                                      pw_timeout(seconds));
}

/// The part of a rank that takes part in the collective while others prepare sends and receives for a test.
void look_on(Context& context, Region& region, const std::string& test) {
  const nb::gil_scoped_release release;
  Ends ends;
  ends.context = context->get();
  ends.source = region->get();
  ends.partner = -1;
  trip_of(test, ends, pw_block{});
}

/// One dimension: elements per rank, layers below and above, whether it is periodic.
using HaloDim = std::tuple<uint64_t, uint64_t, uint64_t, bool>;

std::unique_ptr<PlanLoop> halo_loop(Context& context, Region& region, const std::vector<uint32_t>& ranks,
                                    const std::vector<HaloDim>& dims, uint64_t element_bytes, bool corners,
                                    const std::string& start, uint64_t batch, Seconds seconds) {
  const nb::gil_scoped_release release;
  if (ranks.size() > PW_MAX_DIMS || dims.size() > PW_MAX_ARRAY_DIMS || ranks.size() > dims.size())
    throw std::invalid_argument("the grid or the array of a halo has too many dimensions");
  pw_grid grid{};
  grid.dims = static_cast<uint32_t>(ranks.size());
  std::copy(ranks.begin(), ranks.end(), grid.extent);
  pw_array array{};
  array.region = region->get();
  array.element_bytes = element_bytes;
  array.dims = static_cast<uint32_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto [local, below, above, periodic] = dims[d];
    pw_array_dim& dim = array.dim[d];
    const bool distributed = d < ranks.size();
    dim.extent = local * (distributed ? ranks[d] : 1);
    dim.grid_dim = distributed ? static_cast<int32_t>(d) : -1;
    dim.periodic = periodic ? 1 : 0;
    dim.shadow[0] = dim.width[0] = below;
    dim.shadow[1] = dim.width[1] = above;
  }
  return std::make_unique<PlanLoop>(
      context->get(), pw_region_device(region->get()),
      pw::bench::halo_trip(context->get(), grid, array, corners ? PW_HALO_CORNERS : PW_HALO_FACES),
      pw::bench::start_of(start), batch, pw_timeout(seconds));
}

template <typename Loop>
auto run_samples() {
  return [](Loop& loop, uint64_t samples) { return run([&] { return loop.run(samples); }); };
}

}  // namespace

void bind_bench_plans(nb::module_& module) {
  nb::class_<PlanLoop>(module, "PlanLoop").def("run", run_samples<PlanLoop>(), nb::arg("samples"));
  module.def("plan_loop", &pair_loop, nb::arg("pair"), nb::arg("test"), nb::arg("block"), nb::arg("start"),
             nb::arg("batch"), nb::arg("timeout") = nb::none(), nb::keep_alive<0, 1>());
  nb::class_<KernelLoop>(module, "KernelLoop").def("run", run_samples<KernelLoop>(), nb::arg("samples"));
  module.def("kernel_loop", &kernel_loop, nb::arg("pair"), nb::arg("test"), nb::arg("block"),
             nb::arg("packets"), nb::arg("timeout") = nb::none(), nb::keep_alive<0, 1>());
  module.def("look_on", &look_on, nb::arg("context"), nb::arg("region"), nb::arg("test"));
  module.def("halo_loop", &halo_loop, nb::arg("context"), nb::arg("region"), nb::arg("grid"), nb::arg("dims"),
             nb::arg("element_bytes"), nb::arg("corners"), nb::arg("start"), nb::arg("batch"),
             nb::arg("timeout") = nb::none(), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());

  nb::class_<AsyncPingPong>(module, "AsyncPingPong")
      .def(
          "__init__",
          [](AsyncPingPong* self, Pair& pair, const pw_block& message, Region& buffer, uint64_t compute_bytes,
             const std::string& mode, uint64_t batch, Seconds seconds) {
            const nb::gil_scoped_release release;
            new (self) AsyncPingPong(pair.ends(), message, buffer->get(), compute_bytes,
                                     pw::bench::mode_of(mode), batch, pw_timeout(seconds));
          },
          nb::arg("pair"), nb::arg("message"), nb::arg("buffer"), nb::arg("compute_bytes"), nb::arg("mode"),
          nb::arg("batch"), nb::arg("timeout") = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("run", run_samples<AsyncPingPong>(), nb::arg("samples"));

  using Given = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Room = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  module.def(
      "store",
      [](Region& region, const Given& from) {
        if (from.size() > region->bytes()) throw std::invalid_argument("more bytes than the region has");
        pw::bench::store(region->get(), reinterpret_cast<const std::byte*>(from.data()), from.size());
      },
      nb::arg("region"), nb::arg("source"));
  module.def(
      "load",
      [](Region& region, const Room& to) {
        if (to.size() > region->bytes()) throw std::invalid_argument("more bytes than the region has");
        pw::bench::load(region->get(), reinterpret_cast<std::byte*>(to.data()), to.size());
      },
      nb::arg("region"), nb::arg("to"));
}

}  // namespace pwpy
