// The identity of an endpoint's job: its public number and its secret.
#pragma once

#include <cstdint>
#include <optional>

#include "base/secret.h"

namespace pw::nic {

struct Job {
  uint64_t number;               ///< no other job's; anybody may know it
  std::optional<Secret> secret;  ///< only the job's own processes know it; empty: nobody gave them one
};

/// PEERWAY_NIC_SECRET, which `peerway mpirun` gives all ranks; empty where it is not set. Use it only through
/// derive_secret(). Throws Error, which does not show it.
std::optional<Secret> secret_from_environment();

}  // namespace pw::nic
