// Which NIC plugin to use, with which options, in which job: read from the environment that `peerway mpirun`
// sets.
#pragma once

#include "nic/job.h"
#include "nic/nic_spec.h"

namespace pw::uct {

struct Settings {
  nic::NicSpec nic;  ///< from PEERWAY_NIC
  nic::Job job;  ///< PEERWAY_NIC_JOB, else derived from the launcher's name of the job; and the job's secret
};

/// Whether PEERWAY_NIC names a plugin, so that the transport is used.
bool wanted();

/// Throws Error if PEERWAY_NIC is not set or does not name one NIC, PEERWAY_NIC_JOB is not a number, or
/// PEERWAY_NIC_SECRET is not a secret.
Settings settings_from_environment();

/// Secrets by what they authenticate. They are derived from the job's secret; without one (in a program that
/// was not started by `peerway mpirun`) from its number, which detects damage and other jobs but keeps nobody
/// out.
struct JobSecrets {
  Secret addresses;
  Secret keys;
};

/// Returns the secrets of this process's job. Throws Error like settings_from_environment(), at the first
/// call only.
const JobSecrets& job_secrets();

}  // namespace pw::uct
