// Linpack as apps/hpl does it, on a machine whose GPUs are given by the time of their kernels.
#ifndef SCALE_HPL_H
#define SCALE_HPL_H

#include <string>

#include "job.h"

namespace scale {

/// What GPUs take for their part, measured on one of them: see linpack.py.
struct Kernels {
  double gemm = 50e6;        // FLOP in a microsecond
  double column_us = 10;     // of a column of a panel, on the GPUs that have it
  double element_us = 2e-7;  // of an element of U: rows moved, triangles solved
};

struct Linpack {
  uint64_t nb = 1024;
  uint64_t panels = 64;              // that are simulated, evenly spread; each stands for as many others
  std::string broadcast = "1ringM";  // as apps/hpl names them
  bool doubling = false;             // pivots: by exchanges with one rank after another, not with all at once
  uint64_t pieces = 4;               // of the update of a panel; rows are exchanged before each
  bool whole = false;  // rows are exchanged by all their messages, not by one each of as much time
  Kernels kernels;
};

struct LinpackResult : Result {
  double busy = 0;      // the mean part of the time that a GPU's kernels run
  double pivot_us = 0;  // the exchange of a pivot
  double shares = 0;    // an exchange of rows takes as long as so many ranks' shares to the next rank
  uint64_t panels = 0;  // simulated
};

/// The factorization of N x N on a grid of P x Q ranks, P the first dimension of the job's grid.
LinpackResult linpack(simgrid::s4u::Engine& engine, const Job& job, const Linpack& settings, uint64_t n);

}  // namespace scale

#endif
