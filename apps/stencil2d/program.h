// The course of a run, the same for all variants and both executables.
#ifndef STENCIL2D_PROGRAM_H
#define STENCIL2D_PROGRAM_H

#include "variant.h"

namespace stencil {

/// Makes the variant that the problem names. Collective.
using MakeVariant = std::function<std::unique_ptr<Variant>(const Problem& problem)>;

/// For each variant: sets the field up, warms up, runs, checks, and lets rank 0 print the result. Returns the
/// exit status: 1 when a variant was refused or its field is wrong. Collective.
int run(const Options& options, Group& group, Device& device, const MakeVariant& make_variant);

}  // namespace stencil

#endif
