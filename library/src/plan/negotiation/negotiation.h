// The negotiation of a plan: what its partners tell one another, and which way each message goes. In it each
// send or receive of this rank becomes a lane, whose other end is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "context/context.h"
#include "context/signal.h"
#include "plan/builder/operations.h"
#include "plan/negotiation/lanes.h"
#include "team/agreement.h"

namespace pw {

struct Lane : LaneEnd {
  LaneOffer offer;   ///< as this rank tells its partner of it
  LaneOffer theirs;  ///< as the partner does
  size_t place = 0;  ///< of that among the other rank's sends and receives with this one
  Remote* mailbox = nullptr;
  Remote* target = nullptr;  ///< send: the region it goes to
  LaneReach reach;
  Signal* signal = nullptr;      ///< posted: a receive's arrivals here, or that its target is ready
  Remote* far_signal = nullptr;  ///< posted: the one of the other end
  LaneKind kind = LaneKind::posted;
  uint32_t pieces = 1;
  uint64_t slot_bytes = 0;
  uint64_t slots_at = 0;    ///< offset of the two slots in those of the receiver's rank
  Remote* slots = nullptr;  ///< send: the receiver's

  [[nodiscard]] uint32_t unit() const { return std::min(offer.unit, theirs.unit); }  ///< for both ends
};

/// Lives as long as its plan: it holds the memory and the signals that the lanes use.
class Negotiation {
 public:
  /// Makes this rank's mailbox. Throws Error.
  Negotiation(Context& context, Device& device, const PlanOperations& operations);
  /// Rounds of messages with the partners, after which all members of the lanes are known. Throws Error.
  void join(Exchange& exchange);
  /// Tells the partners that this rank is ready, and waits until they are.
  void confirm(Exchange& exchange);

  [[nodiscard]] const std::vector<Lane>& sends() const { return sends_; }
  [[nodiscard]] const std::vector<Lane>& receives() const { return receives_; }
  [[nodiscard]] bool is_own(const Lane& lane) const { return lane.rank == context_.team().rank(); }
  /// Memory of this rank: the words of all lanes, and the slots of the receives. Null where none are needed.
  [[nodiscard]] Region* mailbox() const { return mailbox_.get(); }
  [[nodiscard]] Region* slots() const { return slots_.get(); }

 private:
  [[nodiscard]] uint8_t device_kind() const { return static_cast<uint8_t>(device_.id().kind); }
  std::shared_ptr<Region> cleared(uint64_t bytes);
  PeerMessages exchange_with_partners(Exchange& exchange, const std::function<Bytes(int rank)>& write);
  PlanOffer offer_to(int rank);
  Remote* import_of(int rank, KeyType type, ByteView key);
  void find_partners(const PeerMessages& offered);
  [[nodiscard]] LaneKind routed(const Lane& lane, uint64_t bytes) const;  ///< of a send
  void choose_methods();
  [[nodiscard]] Bytes report_lanes_to(int rank) const;
  void settle_kinds(const PeerMessages& reported);
  void open_slots();
  void open_signals();
  [[nodiscard]] Bytes opened_for(int rank) const;
  void meet_opened(const PeerMessages& opened);

  Context& context_;
  Device& device_;
  const std::set<int> partners_;
  std::vector<Lane> sends_, receives_;
  std::shared_ptr<Region> mailbox_;
  std::shared_ptr<Region> slots_;
  std::vector<std::shared_ptr<Remote>> remotes_;  ///< what lanes write to
  std::vector<std::unique_ptr<Signal>> signals_;  ///< of posted lanes
};

}  // namespace pw
