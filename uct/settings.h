// Which card's plugin, with which options, in which job: from the environment, as `peerway mpirun` sets it.
#pragma once

#include "nic/card_spec.h"
#include "nic/job.h"

namespace pw::uct {

struct Settings {
  nic::CardSpec card;  ///< from PEERWAY_NIC
  nic::Job job;        ///< PEERWAY_NIC_JOB, else made from what the launcher calls the job; and its secret
};

/// Whether PEERWAY_NIC names a plugin, so that the transport is wanted.
bool wanted();

/// Throws Error when PEERWAY_NIC is not set or does not name one card, or PEERWAY_NIC_JOB is no number, or
/// PEERWAY_NIC_SECRET no secret.
Settings settings_from_environment();

}  // namespace pw::uct
