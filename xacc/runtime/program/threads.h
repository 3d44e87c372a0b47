// Limits the OpenMP threads of a rank.
#pragma once

#include "peerway/peerway.hpp"

namespace pwx {

/// Divides a host's CPUs among its ranks, unless OMP_NUM_THREADS is set: each rank gets at least one thread,
/// and a CPU on which k ranks may run counts 1/k. Collective.
void share_cpus(peerway::Team& team);

}  // namespace pwx
