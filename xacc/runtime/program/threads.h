// How many threads of OpenMP a rank may use.
#pragma once

#include "peerway/peerway.hpp"

namespace pwx {

/// Collective. Unless OMP_NUM_THREADS says otherwise, the ranks of a host share its CPUs: each takes as many
/// threads as its CPUs come to, those that k ranks may run on counted as 1/k, and at least one.
void share_cpus(peerway::Team& team);

}  // namespace pwx
