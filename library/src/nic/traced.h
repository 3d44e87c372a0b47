// Records the operations of a plugin: each put and get is an event from its post to its completion. If
// nothing is traced when a plugin is loaded, its own entries are used.
#pragma once

#include <string>

#include "peerway/nic.h"

namespace pw::nic {

/// Returns entries that record under the NIC's name; returns `ops` itself if nothing is traced.
pw_nic_ops traced(const pw_nic_ops& ops, const std::string& name);

}  // namespace pw::nic
