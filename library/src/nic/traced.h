// The entries of a plugin with a trace around them: each put and get is an event from its post to its
// completion. A plugin that is loaded where nothing is traced keeps its own.
#pragma once

#include <string>

#include "peerway/nic.h"

namespace pw::nic {

/// The same entries, recorded under the NIC's name. As they are, where nothing is traced.
pw_nic_ops traced(const pw_nic_ops& ops, const std::string& name);

}  // namespace pw::nic
