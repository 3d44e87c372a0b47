// Which card's plugin, with which options, in which job: from the environment, as `peerway mpirun` sets it.
#pragma once

#include <cstdint>

#include "nic/card_spec.h"

namespace pw::uct {

struct Settings {
  nic::CardSpec card;  ///< from PEERWAY_NIC
  uint64_t job;        ///< PEERWAY_NIC_JOB, else made from what the launcher calls the job
};

/// Whether PEERWAY_NIC names a plugin, so that the transport is wanted.
bool wanted();

/// Throws Error when PEERWAY_NIC is not set or does not name one card, or PEERWAY_NIC_JOB is no number.
Settings settings_from_environment();

}  // namespace pw::uct
