// An open endpoint of the NIC with everything that its interfaces share: peers, channels, registered memory
// to copy through, and the lock. UCX calls the interfaces of one context from several threads, each under a
// lock of its own; the NIC requires one call at a time.
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
  /// Throws Error with what is wrong with the settings, or with the NIC's reason.
  explicit Domain(const Settings& settings);
  ~Domain();
  Domain(const Domain&) = delete;

  /// Must be held for all functions below unless they say otherwise.
  SpinLock lock;

  /// Registered memory that no peer knows and no operation uses, least recently used first. It is
  /// deregistered when the NIC has no room for more.
  std::list<RegisteredMemory*> idle_memory;
  /// Number of registered memories that no peer knows and an operation uses. They will become idle.
  size_t busy_memory = 0;

  [[nodiscard]] nic::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] const pw_nic_info& info() const { return endpoint_->info(); }

  /// The largest message, and the largest put or get that goes through a bounce buffer: the NIC's largest
  /// operation may be smaller than a slot of the inbox.
  [[nodiscard]] size_t message_bytes() const { return std::min<uint64_t>(kMessageBytes, info().largest); }

  /// Throws Error with the NIC's reason.
  Channel& channel(const Address& address);

  /// Takes the lock itself, if it is free, and lets the NIC make progress; ended operations are added to the
  /// lists of their interfaces. Returns how many things happened.
  unsigned progress();

  Operation* operation(Peer& peer);
  /// Gives the operation a bounce buffer of kMessageBytes. Returns false, and recycles the operation, if
  /// there is none.
  bool lend(Operation& operation);
  void recycle(Operation* operation);
  /// Adds an ended operation to the list of its interface, or recycles it if it has none.
  void report(Operation* operation);
  /// Called before the list of an interface, or the memory, is destroyed: no operation refers to it any more.
  void forget(EndedOperations& list);
  void forget(const RegisteredMemory& memory);

  /// Records that the NIC had no room: nothing is tried again before the next progress().
  void set_out_of_room() { out_of_room_ = true; }
  [[nodiscard]] bool is_out_of_room() const { return out_of_room_; }

  /// Calls the peer's advance() from progress() until it has nothing left to settle.
  void add_unsettled(Peer& peer);
  void peer_failed() { failures_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns how many peers have failed. Needs no lock.
  [[nodiscard]] unsigned failures() const { return failures_.load(std::memory_order_relaxed); }
  /// Records that the endpoint of that number has closed.
  void departed(uint32_t number);
  /// Asks all peers in use for a sign of life.
  void probe_peers();
  /// Returns whether everything started, to all peers, is in place; starts the flushes that are needed.
  bool settle();
  void fence();

 private:
  static constexpr size_t kBounces = 64;  ///< number made at a time
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::unique_ptr<nic::Memory> memory;
  };

  Peer& peer(const nic::EndpointFacts& facts);
  bool more_bounces();
  unsigned work();
  void serve();
  void say_goodbye();

  std::deque<Operation> operations_;  ///< the NIC may call their `done` until it is closed
  std::unique_ptr<nic::Endpoint> endpoint_;
  std::vector<Operation*> idle_operations_;
  std::vector<Chunk> chunks_;
  std::vector<Bounce> idle_bounces_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Peer*> unsettled_;
  bool out_of_room_ = false;
  std::atomic<unsigned> failures_ = 0;
  std::atomic<bool> closing_ = false;
  std::thread server_;  ///< continues operations while the program does not call UCX
};

}  // namespace pw::uct
