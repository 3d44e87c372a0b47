// The negotiation of a plan. This rank and its partners tell one another of their sends and receives, and
// agree on the method by which each message goes. From each send or receive of this rank it makes a lane,
// whose other end is known.
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
  LaneOffer offer;            ///< this end, as this rank tells its partner of it
  LaneOffer theirs;           ///< the other end, as the partner tells this rank of it
  size_t partner_index = 0;   ///< index of the other end in the partner's messages to this rank: its sends
                              ///< come first, then its receives
  Remote* mailbox = nullptr;  ///< of the partner
  Remote* target = nullptr;   ///< send: the region that the message goes to
  LaneReach reach;
  Signal* signal = nullptr;      ///< posted: tells a receive that the data has arrived, and a send that the
                                 ///< receiver is ready
  Remote* far_signal = nullptr;  ///< posted: the signal of the other end
  SendMethod method = SendMethod::posted;
  uint32_t pieces = 1;      ///< number of workers of a GPU that share the lane
  uint64_t slot_bytes = 0;  ///< size of one slot
  uint64_t slots_at = 0;    ///< offset of the lane's two slots in the receiver's mailbox or slot region
  Remote* slots = nullptr;  ///< send: that memory

  [[nodiscard]] uint32_t unit() const { return std::min(offer.unit, theirs.unit); }  ///< for both ends
};

/// Holds the lanes, and the memory and signals that they use. So it lives as long as its plan.
class Negotiation {
 public:
  /// Makes this rank's mailbox. Throws Error.
  Negotiation(Context& context, Device& device, const PlanOperations& operations);
  /// Exchanges messages with the partners three times; then all members of the lanes are known. Throws Error.
  void negotiate(Exchange& exchange);
  /// Tells the partners that this rank is ready, and waits until they are.
  void confirm(Exchange& exchange);

  [[nodiscard]] const std::vector<Lane>& sends() const { return sends_; }
  [[nodiscard]] const std::vector<Lane>& receives() const { return receives_; }
  [[nodiscard]] bool is_own(const Lane& lane) const { return lane.rank == context_.team().rank(); }
  /// Memory of this rank to which partners write: the mailbox has the words of all lanes, and on the host
  /// their small slots. Null if the plan has no lanes.
  [[nodiscard]] Region* mailbox() const { return mailbox_.get(); }
  /// The memory with the slots of a receive.
  [[nodiscard]] const Region& slots_of(const Lane& receive) const {
    return slots_in_mailbox(receive) ? *mailbox_ : *slots_;
  }

 private:
  [[nodiscard]] bool slots_in_mailbox(const Lane& lane) const {
    return pw::slots_in_mailbox(device_kind(), lane.offer.bytes);
  }
  [[nodiscard]] uint8_t device_kind() const { return static_cast<uint8_t>(device_.id().kind); }
  std::shared_ptr<Region> allocate(uint64_t bytes);
  PeerMessages exchange_with_partners(Exchange& exchange, const std::function<Bytes(int rank)>& write);
  PlanOffer offer_to(int rank);
  Remote* import_of(int rank, KeyType type, ByteView key);
  void match_lanes(const PeerMessages& offered);
  [[nodiscard]] SendMethod method_of_send(const Lane& lane, uint64_t bytes) const;
  void choose_methods();
  [[nodiscard]] Bytes report_lanes_to(int rank) const;
  void agree_on_methods(const PeerMessages& reported);
  void open_slots();
  void open_signals();
  [[nodiscard]] Bytes opened_for(int rank) const;
  void import_opened(const PeerMessages& opened);

  Context& context_;
  Device& device_;
  const std::set<int> partners_;
  const bool common_start_;
  std::vector<Lane> sends_, receives_;
  std::shared_ptr<Region> mailbox_;
  std::shared_ptr<Region> slots_;  ///< those that are not in the mailbox; null if there are none
  std::vector<std::shared_ptr<Remote>> remotes_;  ///< what lanes write to
  std::vector<std::unique_ptr<Signal>> signals_;  ///< of posted lanes
};

}  // namespace pw
