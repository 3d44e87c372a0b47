// The variant in-kernel: one persistent kernel does all steps and pushes its own halo.
#ifndef STENCIL2D_IN_KERNEL_H
#define STENCIL2D_IN_KERNEL_H

#include <peerway/peerway.hpp>

#include "variant.h"

namespace stencil {

/// Collective. Throws Refused when a rank's lattice does not fit the shared memory of its GPU.
std::unique_ptr<Variant> make_in_kernel(const Problem& problem, peerway::Context& context);

}  // namespace stencil

#endif
