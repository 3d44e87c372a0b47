// The identity of an endpoint's job: its public number and its secret.
#pragma once

#include <cstdint>
#include <optional>

#include "base/secret.h"

namespace pw::nic {

struct Job {
  uint64_t number;               ///< unique to the job; not secret
  std::optional<Secret> secret;  ///< known only to the job's processes; empty: the job has none
};

/// Returns PEERWAY_NIC_SECRET, which `peerway mpirun` gives to all ranks; empty if it is not set. Use it only
/// through derive_secret(). Throws Error, without the value, if it is malformed.
std::optional<Secret> secret_from_environment();

}  // namespace pw::nic
