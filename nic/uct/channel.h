// Messages to one interface of a peer: the sending end of a ring in its inbox. It outlives the connections
// that use it, because the ring's counts go on. Under the domain's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "uct/inbox.h"
#include "uct/peer.h"

namespace pw::uct {

class Channel {
 public:
  /// Throws Error with what the NIC says.
  Channel(Domain& domain, Peer& peer, const pw_nic_key& inbox);
  Channel(const Channel&) = delete;

  [[nodiscard]] Peer& peer() { return peer_; }
  [[nodiscard]] const pw_nic_key& inbox() const { return inbox_->key(); }

  /// Whether there is room for a message; if not, asks the receiver how far it is.
  bool room();
  /// Sends a message, when room(). `memory` null: the bytes are copied. `operation` may be null.
  pw_nic_status send(uint8_t id, const void* data, size_t bytes, nic::Memory* memory, Operation* operation);
  /// Gets a word of the receiver, so that its death is noticed though nothing is sent.
  void probe();
  /// Tells the receiver that nothing follows. False: the NIC had no room, try again.
  bool leave();

 private:
  void request_count();
  void counted(uint64_t count);

  Domain& domain_;
  Peer& peer_;
  std::unique_ptr<nic::RemoteMemory> inbox_;
  uint64_t ring_;  ///< its place in the inbox
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;  ///< as far as is known
  bool known_ = false;  ///< where the ring's counts stand: another endpoint may have had the number
  bool announced_ = false, departed_ = false;
  bool count_requested_ = false;
};

}  // namespace pw::uct
