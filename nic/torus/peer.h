// An endpoint's data about another one, and the operations towards it.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "peerway/nic.h"
#include "torus/directory.h"
#include "torus/memory.h"
#include "torus/order.h"
#include "torus/route.h"

namespace pw::torus {

/// Where an endpoint is: the contents of its pw_nic_address. Plain bytes.
struct EndpointAddress {
  uint32_t magic;
  uint32_t number;
  uint64_t session;      ///< random
  uint64_t host;         ///< hash of the job's directory on its host
  uint64_t job;          ///< hash of the job
  uint64_t fingerprint;  ///< fingerprint of its torus file
  uint64_t beacon;       ///< address of the session number in its process
  int32_t process;
  uint32_t ip;  ///< in network byte order, like the port
  uint16_t port;
};
static_assert(sizeof(EndpointAddress) <= PW_NIC_ADDRESS_BYTES);

struct TorusPeer {
  TorusPeer(const EndpointAddress& p, uint32_t guarantees) : place(p), order(guarantees) {}

  EndpointAddress place;
  uint32_t node = 0;
  EndpointEntry* entry = nullptr;  ///< null: the peer is on another host
  bool attach = false;             ///< its memory can be reached by cross-memory attach
  Route route_to, route_from;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> under_way{0};  ///< operations that the engine has

  // Used only by the thread that posts.
  uint64_t bytes_to = 0, packets_to = 0, bytes_from = 0, packets_from = 0;

  // Used only by the engine.
  Order order;
  uint32_t by_datagram = 0;       ///< number of operations under way by datagrams
  uint64_t last_get_arrival = 0;  ///< when the last get arrives

  [[nodiscard]] bool gone() const {
    return lost.load(std::memory_order_acquire) ||
           (entry != nullptr && entry->session.load(std::memory_order_acquire) != place.session);
  }
};

/// A put or get that was accepted and has not ended.
struct Operation {
  bool put;
  std::shared_ptr<TorusPeer> peer;
  std::shared_ptr<PeerMemory> target;  ///< what a put writes to, or a get reads
  uint64_t offset, bytes;
  std::byte* local;
  std::shared_ptr<Memory> memory;  ///< null: the bytes of a put were copied
  std::vector<std::byte> copied;
  pw_nic_done* done;
  bool by_datagram = false;
  uint64_t received = 0;  ///< bytes of a get by datagrams that have arrived

  [[nodiscard]] bool of_host() const { return memory == nullptr || memory->kind == PW_NIC_HOST; }
  [[nodiscard]] bool alive() const {
    return memory == nullptr || memory->alive.load(std::memory_order_acquire);
  }
};

using OperationPointer = std::unique_ptr<Operation>;

}  // namespace pw::torus
