// The sockets under a team: listening, connecting and telling whose process is at the other end. All
// non-blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "team/ticket.h"

namespace pw {

/// Opens a listening socket. Throws Error(PW_SYSTEM) naming the address and, when it is in use, what to do.
Descriptor listen_on(const Address& address);

/// Listens on any free TCP port of all interfaces and returns under which addresses others may reach it.
Descriptor listen_on_any_port(std::vector<Address>& reachable);

/// The next waiting connection, or none.
Descriptor accept_from(const Descriptor& listener);

/// Connects; throws Error(PW_SYSTEM) when nobody listens there, or Error(PW_TIMEOUT).
Descriptor connect_to(const Address& address, uint64_t deadline);

/// The user of the process at the other end of a Unix socket; nothing for TCP.
std::optional<uid_t> peer_user(const Descriptor& socket);

/// A connected pair of Unix sockets.
std::pair<Descriptor, Descriptor> socket_pair();

}  // namespace pw
