// When an engine has a UDP socket, and from where it takes datagrams.
#include <arpa/inet.h>

#include "torus/engine.h"
#include "torus/failure.h"

namespace pw::torus {

// At the first operation that must go by datagrams, or when a peer asks for it. False when there can be none:
// the peer gives up after a while.
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

// Whether a datagram comes from where endpoint `number` is: by the torus file or, where all are on this host,
// by the port in the endpoint's entry.
bool Engine::is_home(uint32_t number, const sockaddr_in& from) const {
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
