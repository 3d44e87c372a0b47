// An open endpoint of the NIC with all that its interfaces share: peers, channels, registered memory to copy
// through, and the lock. UCX calls the interfaces of one context from several threads, each under a lock of
// its own; the NIC wants one call at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/spin_lock.h"
#include "nic/endpoint.h"
#include "uct/address.h"
#include "uct/channel.h"
#include "uct/inbox.h"
#include "uct/operation.h"
#include "uct/settings.h"

namespace pw::uct {

class Domain {
 public:
  /// Throws Error with what is wrong with the settings or what the NIC says.
  explicit Domain(const Settings& settings);
  ~Domain();
  Domain(const Domain&) = delete;

  /// Held for whatever follows, unless it says otherwise.
  SpinLock lock;

  /// Registered memory that no peer knows and no transfer uses, by its last use: it gives way when the NIC
  /// has no room for more.
  std::list<RegisteredMemory*> idle_memory;
  /// Registered memory that no peer knows, in use: it will give way.
  size_t passing_memory = 0;

  [[nodiscard]] nic::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] const pw_nic_info& info() const { return endpoint_->info(); }

  /// The largest message, and the largest put or get that goes through a bounce buffer: what the NIC moves
  /// at once may be less than a slot of the inbox has.
  [[nodiscard]] size_t message_bytes() const { return std::min<uint64_t>(kMessageBytes, info().largest); }

  /// Throws Error with what the NIC says.
  Channel& channel(const Address& address);

  /// Takes the lock itself, if it is free, and lets the NIC work; what ended goes to the tellers. Returns
  /// how many things happened.
  unsigned progress();

  Operation* operation(Peer& peer);
  /// Gives it a bounce buffer of kMessageBytes; false, and recycled, when there is none.
  bool lend(Operation& operation);
  void recycle(Operation* operation);
  /// Hands an ended operation to its teller, or recycles it.
  void tell(Operation* operation);
  /// Drops what is owed to a teller that goes, and the use of memory that goes.
  void forget(Ended& teller);
  void forget(const RegisteredMemory& memory);

  /// The NIC had no room: waiting is better than trying again before the next progress().
  void set_out_of_room() { out_of_room_ = true; }
  [[nodiscard]] bool is_out_of_room() const { return out_of_room_; }

  void restless(Peer& peer);
  void peer_failed() { failures_.fetch_add(1, std::memory_order_relaxed); }
  /// How many peers have failed. Needs no lock.
  [[nodiscard]] unsigned failures() const { return failures_.load(std::memory_order_relaxed); }
  /// The endpoint of that number has closed.
  void departed(uint32_t number);
  /// Asks a sign of life of all peers in use.
  void probe_peers();
  /// Whether all that was started is in place; starts what proves it. For all peers.
  bool settle();
  void fence();

 private:
  static constexpr size_t kBounces = 64;  ///< made at a time
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::unique_ptr<nic::Memory> memory;
  };

  Peer& peer(const nic::EndpointFacts& facts);
  bool more_bounces();
  unsigned work();
  void serve();
  void say_goodbye();

  std::deque<Operation> operations_;  ///< the NIC may call them until it is closed
  std::unique_ptr<nic::Endpoint> endpoint_;
  std::vector<Operation*> idle_operations_;
  std::vector<Chunk> chunks_;
  std::vector<Bounce> idle_bounces_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Peer*> restless_;
  bool out_of_room_ = false;
  std::atomic<unsigned> failures_ = 0;
  std::atomic<bool> closing_ = false;
  std::thread server_;  ///< sees to what must go on while the program does not call UCX
};

}  // namespace pw::uct
