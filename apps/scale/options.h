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
  Extents grid;  // [the torus's own]
  std::vector<uint64_t> bytes{1024};
  bool shuffle = false;
  uint64_t seed = 1;
  uint64_t eager = 8192;
  size_t parts = 1;
  size_t to = 1;
  std::vector<uint64_t> n{65536};  // of Linpack, in place of bytes
  Linpack linpack;
};

/// False when only help was asked for. Throws std::runtime_error for what cannot be.
bool parse(int argc, char** argv, Options& options);

}  // namespace scale

#endif
