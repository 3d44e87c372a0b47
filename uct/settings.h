// Which card's plugin, with which options, in which job: from the environment, as `peerway mpirun` sets it.
#pragma once

#include <cstdint>
#include <string>

namespace pw::uct {

struct Settings {
  std::string plugin;   ///< a short name or a path, from PEERWAY_NIC
  std::string options;  ///< the plugin's own text, from PEERWAY_NIC_OPTIONS
  uint64_t job;         ///< PEERWAY_NIC_JOB, else made from what the launcher calls the job
};

/// Whether PEERWAY_NIC names a plugin, so that the transport is wanted.
bool wanted();

/// Throws Error when PEERWAY_NIC is not set or PEERWAY_NIC_JOB is no number.
Settings settings_from_environment();

/// The file of a plugin: a path as it is; a short name is looked for beside this library, then wherever the
/// system looks for libraries.
std::string plugin_file(const std::string& plugin);

}  // namespace pw::uct
