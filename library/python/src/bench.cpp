// The timed loops of library/src/bench for Python: samples come back as NumPy arrays of nanoseconds.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "bench/data.h"
#include "bench/limits.h"
#include "bench/pair.h"
#include "bench_samples.h"
#include "core.h"
#include "device/shape.h"

namespace pwpy {

using pw::bench::Samples;

std::tuple<Array, double> to_python(Samples&& samples) {
  auto kept = std::make_unique<std::vector<double>>(std::move(samples.ns));
  double* data = kept->data();
  const size_t size = kept->size();
  const nb::capsule owner(kept.release(),
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  const double percent = samples.wall_ns > 0 ? 100 * samples.cpu_ns / samples.wall_ns : 0;
  return {Array(data, {size}, owner), percent};
}

namespace {

using pw::bench::Ends;
using pw::bench::Pair;
using pw::bench::Work;
using Method = Samples (Pair::*)(const Work&);

template <Method method>
auto loop() {
  return [](Pair& pair, const pw_block& block, uint64_t iterations, uint64_t window, bool touch,
            std::optional<double> seconds) {
    const Work work{block, window, iterations, touch, pw_timeout(seconds)};
    return run([&] { return (pair.*method)(work); });
  };
}

void bind_pair(nb::module_& module) {
  const auto def = [](auto& type, const char* name, auto body) {
    type.def(name, body, nb::arg("block"), nb::arg("iterations"), nb::arg("window") = 1,
             nb::arg("touch") = false, nb::arg("timeout") = nb::none());
  };
  nb::class_<Pair> type(module, "Pair");
  type.def(
      "__init__",
      [](Pair* self, Context& context, Region& source, Region& target, Remote& far_source, Remote& far_target,
         Signal& arrived, Remote& far_arrived, bool leads) {
        new (self)
            Pair(Ends{context->get(), source->get(), target->get(), far_source->get(), far_target->get(),
                      arrived->get(), far_arrived->get(), far_target->rank(), leads});
      },
      nb::arg("context"), nb::arg("source"), nb::arg("target"), nb::arg("far_source"), nb::arg("far_target"),
      nb::arg("arrived"), nb::arg("far_arrived"), nb::arg("leads"), nb::keep_alive<1, 2>(),
      nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
      nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
  def(type, "ping_pong", loop<&Pair::ping_pong>());
  def(type, "signal_ping_pong", loop<&Pair::signal_ping_pong>());
  def(type, "put_window", loop<&Pair::put_window>());
  def(type, "put_both", loop<&Pair::put_both>());
  def(type, "get_window", loop<&Pair::get_window>());
  def(type, "register_again", loop<&Pair::register_again>());
}

using Bytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void need(uint64_t size, uint64_t wanted) {
  if (size < wanted) throw std::invalid_argument("an array of this benchmark is too small for its block");
}

std::tuple<Array, double> copy_window(const Bytes& to, const Bytes& from, const pw_block& block,
                                      uint64_t window, uint64_t iterations) {
  pw::join(block, to.size(), "target array", block, from.size(),
           "source array");  // throws if the block is invalid
  auto* target = reinterpret_cast<std::byte*>(to.data());
  const auto* source = reinterpret_cast<const std::byte*>(from.data());
  return run([&] { return pw::bench::copy_window(target, source, block, window, iterations); });
}

/// Two processes share `words`: the leader writes word 0, the other process word 64, which is several cache
/// lines away.
std::tuple<Array, double> flag_ping_pong(const Words& words, bool leads, uint64_t iterations,
                                         std::optional<double> seconds) {
  need(words.size(), 65);
  uint64_t* mine = words.data() + (leads ? 0 : 64);
  const uint64_t* partners = words.data() + (leads ? 64 : 0);
  return run(
      [&] { return pw::bench::flag_ping_pong(mine, partners, leads, iterations, pw_timeout(seconds)); });
}

}  // namespace

void bind_bench(nb::module_& module) {
  bind_pair(module);
  module.def("copy_window", &copy_window, nb::arg("to"), nb::arg("source"), nb::arg("block"),
             nb::arg("window"), nb::arg("iterations"));
  module.def("flag_ping_pong", &flag_ping_pong, nb::arg("words"), nb::arg("leads"), nb::arg("iterations"),
             nb::arg("timeout") = nb::none());
  const auto release = nb::call_guard<nb::gil_scoped_release>();
  module.def(
      "fill_random",
      [](Region& region, uint64_t bytes, uint64_t seed) {
        pw::bench::fill_random(region->get(), bytes, seed);
      },
      nb::arg("region"), nb::arg("bytes"), nb::arg("seed"), release);
  module.def(
      "poison", [](Region& region, uint64_t bytes) { pw::bench::poison(region->get(), bytes); },
      nb::arg("region"), nb::arg("bytes"), release);
  module.def(
      "holds",
      [](Region& region, const pw_block& block, uint64_t seed) {
        return pw::bench::holds(region->get(), block, seed);
      },
      nb::arg("region"), nb::arg("block"), nb::arg("seed"), release);
}

}  // namespace pwpy
