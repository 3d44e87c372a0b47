// The command line.
#ifndef STENCIL2D_OPTIONS_H
#define STENCIL2D_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lattice.h"

namespace stencil {

/// How the exchange and the computation of a step are laid out in time: the part of a variant's name after
/// the slash.
enum class Overlap {
  order,   // (nothing) start, interior, finish, boundary in one queue
  serial,  // the exchange, then all cells
  branch,  // interior in one queue, exchange and boundary in an urgent one beside it
};
Overlap overlap_of(const std::string& variant);
std::string name_of(const std::string& variant);  // the part before the slash

struct Options {
  std::vector<std::string> variants;  // to run one after the other
  int grid[2] = {1, 1};
  uint64_t global[2] = {256, 256};
  uint64_t iterations = 1000;
  uint64_t batch = 0;   // iterations timed together, and recorded in one graph
  uint64_t warmup = 3;  // batches before the clock starts
  double timeout_s = 60;
  bool periodic = true;
  bool cuda = false;
  bool check = false;
  bool phases = false;
  bool json = false;
};

/// Reads the command line, alike on all ranks. `variants` are those this program has, the first is the
/// default. Returns the status with which to end when rank 0 printed the help, or what was given and what may
/// be: kBadOption.
constexpr int kBadOption = 2;
std::optional<int> parse_or_say(int argc, char** argv, const std::vector<std::string>& variants, int rank,
                                Options& options);

}  // namespace stencil

#endif
