// Operations over datagrams: cuts them into packets, which the other end stores or answers in the order in
// which the operations were started. Not thread-safe; the engine holds the lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_set>

#include "torus/counters.h"
#include "torus/flow.h"
#include "torus/peer.h"
#include "torus/wire.h"

namespace pw::torus {

class Exchange {
 public:
  struct Hooks {
    std::function<void(OperationPointer, pw_nic_status)> complete;
    /// Returns registered memory of this endpoint; null if it is not registered, or no longer.
    std::function<std::shared_ptr<Memory>(uint32_t slot, uint32_t generation)> find;
    std::function<void(uint64_t session)> lost;
    /// Whether, as far as is known, the job's endpoint of that number sends from that address.
    std::function<bool(uint32_t number, const sockaddr_in& from)> sends_from;
  };
  Exchange(const EndpointAddress& self, const Secret& key, Wire& wire, Counters& counters, Hooks hooks);
  ~Exchange();

  void start(OperationPointer operation, uint64_t now);
  /// Handles a batch of arrived datagrams. Returns how many.
  unsigned receive(uint64_t now);
  /// Sends what is due, and gives up peers that do not answer. Returns when it must be called again.
  uint64_t attend(uint64_t now);
  /// Ends all operations towards that endpoint with PW_NIC_UNREACHABLE, and ignores it from now on.
  void lose(uint64_t session);
  [[nodiscard]] bool idle() const;
  /// Tells all peers that this endpoint closes, and gives up what is under way.
  void say_goodbye();

 private:
  struct Message;
  struct Flow;
  Flow* flow_of(uint32_t number, uint64_t session, const sockaddr_in& to, uint64_t now);
  void take_datagram(std::span<const std::byte> datagram, const sockaddr_in& from, uint64_t now);
  void take_acknowledgement(Flow& flow, const Header& header, uint64_t now);
  void take_in_order(Flow& flow, std::span<const std::byte> datagram);
  void take_get(Flow& flow, const Header& header);
  void take_data(Flow& flow, const Packet& packet);
  static bool load(Message& message, std::byte* to, uint64_t bytes);
  static void store(Flow& flow, const std::shared_ptr<Memory>& memory, std::byte* to,
                    std::span<const std::byte> bytes);
  bool cut(Flow& flow, uint64_t now);
  void transmit(Flow& flow, Datagram& datagram);
  void send_bare(Flow& flow, Kind kind, uint64_t turn = 0);
  bool silent(Flow& flow, uint64_t now);
  [[nodiscard]] Header header_to(const Flow& flow, Kind kind) const;

  EndpointAddress self_;
  Secret key_;
  Wire& wire_;
  Counters& counters_;
  Hooks hooks_;
  std::map<uint64_t, std::unique_ptr<Flow>> flows_;  ///< by session
  std::unordered_set<uint64_t> gone_;                ///< sessions that are ignored
  uint64_t next_id_ = 1;
};

}  // namespace pw::torus
