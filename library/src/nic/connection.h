// A connection to one other endpoint, with that endpoint's control memory as this end reaches it. Shared by
// the stream to that peer and by the work done on the peer's behalf.
#pragma once

#include <memory>

#include "nic/endpoint.h"

namespace pw::nic {

class Connection {
 public:
  /// Throws Error with what the NIC says.
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
