// Simulates Linpack as apps/hpl does it, on a machine whose GPUs are described by the times of their kernels.
#ifndef SCALE_HPL_H
#define SCALE_HPL_H

#include <string>

#include "job.h"

namespace scale {

/// The times of GPU kernels, measured on one GPU: see linpack.py.
struct Kernels {
  double gemm = 50e6;        // FLOP per microsecond
  double column_us = 10;     // for a column of a panel, on the GPUs that have it
  double element_us = 2e-7;  // for an element of U: rows moved, triangles solved
};

struct Linpack {
  uint64_t nb = 1024;
  uint64_t panels = 64;  // number of simulated panels, evenly spread; each stands for equally many others
  std::string broadcast = "1ringM";  // a name from apps/hpl
  bool doubling = false;             // pivots: by exchanges with one rank after another, not with all at once
  uint64_t pieces = 4;               // pieces of the update of a panel; rows are exchanged before each
  bool whole = false;  // simulate all messages of a row exchange, instead of one per rank that takes as much
                       // time
  Kernels kernels;
};

struct LinpackResult : Result {
  double busy = 0;      // the mean fraction of the time in which a GPU's kernels run
  double pivot_us = 0;  // time of the exchange of a pivot
  double shares = 0;    // a row exchange takes as long as this many ranks' shares sent to the next rank
  uint64_t panels = 0;  // number simulated
};

/// Simulates the factorization of an N x N matrix on a grid of P x Q ranks; P is the first dimension of the
/// job's grid.
LinpackResult linpack(simgrid::s4u::Engine& engine, const Job& job, const Linpack& asked, uint64_t n);

}  // namespace scale

#endif
