// The variants whose halos are plans: host-driven, stream, graph; and none, the same work without any
// exchange.
#ifndef STENCIL2D_PLANS_H
#define STENCIL2D_PLANS_H

#include <peerway/peerway.hpp>

#include "variant.h"

namespace stencil {

/// The variant that the options name. Collective. Throws peerway::Error when a halo cannot be made.
std::unique_ptr<Variant> make_planned(const Problem& problem, peerway::Context& context);

}  // namespace stencil

#endif
