// The command line of the simulator.
#ifndef SCALE_OPTIONS_H
#define SCALE_OPTIONS_H

#include <string>
#include <vector>

#include "hpl.h"
#include "machine.h"

namespace scale {

struct Options {
  std::string machine = "torus:4x4";
  Shape shape;
  Nic nic;
  std::string pattern = "halo/put";
  Extents grid;  // default: the extents of the torus
  std::vector<uint64_t> bytes{1024};
  bool shuffle = false;
  uint64_t seed = 1;
  uint64_t eager = 8192;
  size_t parts = 1;
  size_t to = 1;
  std::vector<uint64_t> n{65536};  // for Linpack, instead of `bytes`
  Linpack linpack;
};

/// Returns false if only help was requested. Throws std::runtime_error for impossible options.
bool parse(int argc, char** argv, Options& options);

}  // namespace scale

#endif
