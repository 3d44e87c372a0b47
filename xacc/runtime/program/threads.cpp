#include "xacc/runtime/program/threads.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

namespace pwx {
namespace {

/// The host and the CPUs on which a rank may run. Plain bytes, to be sent.
struct Place {
  std::array<char, 256> host{};
  cpu_set_t cpus{};
};

Place place_of_this() {
  Place place;
  ::gethostname(place.host.data(), place.host.size() - 1);
  ::sched_getaffinity(0, sizeof place.cpus, &place.cpus);
  return place;
}

}  // namespace

void share_cpus(peerway::Team& team) {
  // The program has this function if it was compiled with -fopenmp.
  const auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const bool given = std::getenv("OMP_NUM_THREADS") != nullptr;
  const Place mine = place_of_this();
  std::array<int, CPU_SETSIZE> ranks{};
  for (const peerway::Key& key : team.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    Place place;
    std::memcpy(&place, key.data(), std::min(sizeof place, key.size()));
    for (size_t cpu = 0; cpu < CPU_SETSIZE && place.host == mine.host; ++cpu)
      ranks[cpu] += CPU_ISSET(cpu, &place.cpus) ? 1 : 0;
  }
  double share = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mine.cpus) && ranks[cpu] > 0) share += 1.0 / ranks[cpu];
  if (set != nullptr && !given) set(std::max(1, static_cast<int>(share + 1e-6)));
}

}  // namespace pwx
