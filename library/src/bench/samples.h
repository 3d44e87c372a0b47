// The samples of a timed loop, and the CPU time that it took. The clock is read once per iteration: the end
// of one iteration is the start of the next.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <ctime>
#include <vector>

namespace pw::bench {

struct Samples {
  std::vector<double> ns;  ///< wall time of each iteration
  double wall_ns = 0;      ///< wall time of the whole loop
  double cpu_ns = 0;       ///< CPU time of all threads of this process during the loop
};

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

inline double process_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  return seconds * 1e9 + static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

/// Times `iterations` calls of `body()`, which throws if it cannot continue.
template <typename Body>
Samples timed(uint64_t iterations, Body&& body) {
  Samples samples;
  samples.ns.resize(iterations);  // touches the memory before the clock starts
  const double cpu = process_cpu_ns();
  const uint64_t start = now_ns();
  uint64_t last = start;
  for (double& sample : samples.ns) {
    body();
    const uint64_t now = now_ns();
    sample = static_cast<double>(now - last);
    last = now;
  }
  samples.wall_ns = static_cast<double>(last - start);
  samples.cpu_ns = process_cpu_ns() - cpu;
  return samples;
}

}  // namespace pw::bench
