// Is the field what it should be?
#ifndef STENCIL2D_CHECK_H
#define STENCIL2D_CHECK_H

#include "field.h"
#include "group.h"

namespace stencil {

struct Verdict {
  double error = 0;        // greatest difference from the eigenmodes, whose greatest value is 1.5
  double tolerance = 0;    // what the rounding of so many steps may add up to
  bool serial = false;     // whether it was also compared with a serial run
  uint64_t differing = 0;  // cells that are not the same bits as there
  bool passed() const { return error <= tolerance && differing == 0; }
};

/// Collective; all ranks get the same verdict. `field` is this rank's array after `steps` steps.
Verdict check(const Lattice& lattice, const std::vector<double>& field, uint64_t steps, Group& group);

}  // namespace stencil

#endif
