// The sockets under a team: listening, connecting, and the user of the process at the other end. All
// non-blocking.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "team/ticket.h"

namespace pw {

/// Opens a listening socket. Throws Error(PW_SYSTEM) with the address and, if it is in use, what to do.
Descriptor listen_on(const Address& address);

/// Listens on any free TCP port of all interfaces; returns the addresses at which others may reach it.
Descriptor listen_on_any_port(std::vector<Address>& reachable);

/// The origin of a connection.
struct Origin {
  std::array<std::byte, 16> host{};  ///< TCP: the address (for IPv6 its network); Unix: this host, all zero
  std::optional<uid_t> user;         ///< Unix: the user of the process
};

/// Accepts the next waiting connection. Returns none, with the reason in errno, if there is none.
Descriptor accept_from(const Descriptor& listener, Origin& source);

/// Sets keep-alive and buffers of an authenticated connection; pending ones do not need them.
void trust(int socket);

/// Connects. Throws Error(PW_SYSTEM) if nobody listens there, or Error(PW_TIMEOUT). If others fill the queue
/// of a Unix socket, it waits for its turn.
Descriptor connect_to(const Address& address, uint64_t deadline);

/// Begins to connect to a numeric address and does not wait. Once the socket is writable, or at once if
/// `connected` is set, check_connected() returns if somebody listens there. Throws Error(PW_SYSTEM) if nobody
/// does, or Error(PW_TIMEOUT) if others fill the queue.
Descriptor begin_connect(const Address& address, bool& connected);
void check_connected(int socket, const Address& address);

/// Returns the user of the process at the other end of a Unix socket; nothing for TCP.
std::optional<uid_t> peer_user(int socket);

/// A connected pair of Unix sockets.
std::pair<Descriptor, Descriptor> socket_pair();

}  // namespace pw
