// When an engine opens a UDP socket, and from where it accepts datagrams.
#include <arpa/inet.h>

#include "torus/engine.h"
#include "torus/failure.h"

namespace pw::torus {

// Called at the first operation that needs datagrams, or when a peer asks for a port. Returns false if no
// socket can be opened; the peer then gives up after a while.
bool Engine::open_wire() {
  EndpointEntry& entry = shared_.entry[around_.self.number];
  entry.port_requested = false;
  try {
    wire_.open();
  } catch (const Failure&) {
    return false;
  }
  poll_for(poll_.get(), wire_.descriptor(), kSocketTag);
  entry.port = wire_.port();
  return true;
}

// Whether a datagram comes from the address of endpoint `number`: as given in the torus file or, if all are
// on this host, with the port in the endpoint's entry.
bool Engine::sends_from(uint32_t number, const sockaddr_in& from) const {
  const TorusFile& file = around_.file;
  if (number >= file.node_count() * file.contexts) return false;
  if (file.nodes.empty())
    return from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
           from.sin_port == shared_.entry[number].port.load();
  const NodeAddress& node = file.nodes[number / file.contexts];
  const auto port = static_cast<uint16_t>(node.port + number % file.contexts);
  return from.sin_addr.s_addr == node.ip && (node.port == 0 || from.sin_port == htons(port));
}

}  // namespace pw::torus
