// A connection to one other endpoint, with access to that endpoint's control memory. The stream to that peer
// and the service for the peer's requests share it.
#pragma once

#include <memory>

#include "nic/endpoint.h"

namespace pw::nic {

class Connection {
 public:
  /// Throws Error with the NIC's reason.
  Connection(Endpoint& endpoint, const EndpointFacts& facts);
  ~Connection();
  Connection(const Connection&) = delete;

  [[nodiscard]] const EndpointFacts& facts() const { return facts_; }
  [[nodiscard]] pw_nic_peer* peer() const { return peer_; }
  [[nodiscard]] pw_nic_remote* control() const { return control_; }

 private:
  Endpoint& endpoint_;
  EndpointFacts facts_;
  pw_nic_peer* peer_ = nullptr;
  pw_nic_remote* control_ = nullptr;
};

}  // namespace pw::nic
