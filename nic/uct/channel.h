// A channel sends messages to one interface of a peer, through this endpoint's ring in the inbox there. It
// outlives the connections that use it, because the counts of the ring go on. Protected by the domain's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "uct/inbox.h"
#include "uct/peer.h"

namespace pw::uct {

class Channel {
 public:
  /// Throws Error with the NIC's reason.
  Channel(Domain& domain, Peer& peer, const pw_nic_key& inbox);
  Channel(const Channel&) = delete;

  [[nodiscard]] Peer& peer() { return peer_; }
  [[nodiscard]] const pw_nic_key& inbox() const { return inbox_->key(); }

  /// Whether there is room for a message; if not, asks the receiver for its count.
  bool room();
  /// Sends a message; call it only if room() is true. If `memory` is null the bytes are copied. `operation`
  /// may be null.
  pw_nic_status send(uint8_t id, const void* data, size_t bytes, nic::Memory* memory, Operation* operation);
  /// Gets a word from the receiver, so that its death is noticed even if nothing is sent.
  void probe();
  /// Tells the receiver that nothing follows. Returns false if the NIC had no room: try again.
  bool leave();

 private:
  void request_count();
  void counted(uint64_t count);

  Domain& domain_;
  Peer& peer_;
  std::unique_ptr<nic::RemoteMemory> inbox_;
  uint64_t ring_;  ///< offset of the ring in the inbox
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;  ///< the receiver's count, as far as is known
  bool known_ = false;  ///< whether `sent_` is known: an endpoint that had this number before may have sent
                        ///< messages through the ring
  bool announced_ = false, departed_ = false;
  bool count_requested_ = false;
};

}  // namespace pw::uct
