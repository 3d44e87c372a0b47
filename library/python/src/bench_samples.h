// Converts samples of the timed loops for Python: a NumPy array of nanoseconds, and the CPU use.
#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <tuple>
#include <vector>

#include "bench/samples.h"
#include "core.h"

namespace pwpy {

using Array = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

/// Returns (samples in ns, CPU use in percent of the loop's wall time).
std::tuple<Array, double> to_python(pw::bench::Samples&& samples);

/// Runs a loop without the GIL.
template <typename Loop>
std::tuple<Array, double> run(Loop loop) {
  pw::bench::Samples samples;
  {
    const nb::gil_scoped_release release;
    samples = loop();
  }
  return to_python(std::move(samples));
}

}  // namespace pwpy
