// Which NIC's plugin, with which options, in which job: from the environment, as `peerway mpirun` sets it.
#pragma once

#include "nic/job.h"
#include "nic/nic_spec.h"

namespace pw::uct {

struct Settings {
  nic::NicSpec nic;  ///< from PEERWAY_NIC
  nic::Job job;      ///< PEERWAY_NIC_JOB, else made from what the launcher calls the job; and its secret
};

/// Whether PEERWAY_NIC names a plugin, so that the transport is wanted.
bool wanted();

/// Throws Error when PEERWAY_NIC is not set or does not name one NIC, or PEERWAY_NIC_JOB is no number, or
/// PEERWAY_NIC_SECRET no secret.
Settings settings_from_environment();

/// By what they authenticate. Derived from the job's secret; where nobody gave it one (a program that was not
/// started by `peerway mpirun`) from its number, which finds damage and other jobs, but keeps nobody out.
struct JobSecrets {
  Secret addresses;
  Secret keys;
};

/// The secrets of this process' job. Throws Error as settings_from_environment() does, at the first call
/// only.
const JobSecrets& job_secrets();

}  // namespace pw::uct
