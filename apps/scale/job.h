// One run: the machine's hosts, the ranks on them, and what they exchange.
#ifndef SCALE_JOB_H
#define SCALE_JOB_H

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "lattice.h"

namespace scale {

struct Job {
  std::vector<simgrid::s4u::Host*> host_of;  // by rank
  Extents grid;                              // of the ranks
  uint64_t eager = 8192;  // two-sided messages larger than this are fetched by the receiver
  size_t parts = 1;       // parts of an allreduce by rings, each with its own order of dimensions
};

/// `start` adds the actors; runs them to their end. Returns the simulated microseconds.
template <class Start>
double timed(simgrid::s4u::Engine& engine, Start&& start) {
  const double before = simgrid::s4u::Engine::get_clock();
  start();
  engine.run();
  return simgrid::s4u::Engine::get_clock() - before;
}

struct Result {
  double us = 0;
  bool right = true;  // every rank received what it should
};

Result message(simgrid::s4u::Engine& engine, const Job& job, uint64_t bytes, size_t to);
Result halo_put(simgrid::s4u::Engine& engine, const Job& job, uint64_t bytes);
Result halo_two_sided(simgrid::s4u::Engine& engine, const Job& job, uint64_t bytes);
Result allreduce_rings(simgrid::s4u::Engine& engine, const Job& job, uint64_t bytes);
Result allreduce_doubling(simgrid::s4u::Engine& engine, const Job& job, uint64_t bytes);

}  // namespace scale

#endif
