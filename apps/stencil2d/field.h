// The field at the start, what it is after any number of steps, and what a serial run makes of it.
#ifndef STENCIL2D_FIELD_H
#define STENCIL2D_FIELD_H

#include <cstdint>
#include <vector>

#include "lattice.h"

namespace stencil {

/// Two eigenmodes of the step, sin(..y) sin(..x) each, so different in the dimensions that no two ranks have
/// the same face: an exchange with the wrong neighbour shows. Step by step each decays by a factor of its
/// own.
class Modes {
 public:
  explicit Modes(const Lattice& lattice);

  /// This rank's array with its shadow (zero: also the value beyond a fixed border) after `steps` steps.
  std::vector<double> after(uint64_t steps) const;

 private:
  struct Mode {
    double amplitude, decay;
    std::vector<double> along[2];  // this rank's part of the sines, Y and X
  };
  Lattice lattice_;
  std::vector<Mode> modes_;
};

/// `steps` steps on one process. `field` has the global lattice without a shadow, row by row.
void run_serially(std::vector<double>& field, const uint64_t (&global)[2], bool periodic, uint64_t steps);

}  // namespace stencil

#endif
