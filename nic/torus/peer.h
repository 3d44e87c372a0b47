// What an endpoint knows of another one, and the operations towards it.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "peerway/nic.h"
#include "torus/board.h"
#include "torus/memory.h"
#include "torus/order.h"
#include "torus/route.h"

namespace pw::torus {

/// Where an endpoint is: what pw_nic_address holds; plain bytes.
struct Place {
  uint32_t magic;
  uint32_t number;
  uint64_t session;      ///< random
  uint64_t host;         ///< board that it sits at
  uint64_t job;          ///< a hash of the job
  uint64_t fingerprint;  ///< of its torus file
  uint64_t beacon;       ///< address in its process where the session lies
  int32_t process;
  uint32_t ip;  ///< in network byte order, as the port
  uint16_t port;
};
static_assert(sizeof(Place) <= PW_NIC_ADDRESS_BYTES);

struct TorusPeer {
  TorusPeer(const Place& p, uint32_t guarantees) : place(p), order(guarantees) {}

  Place place;
  uint32_t node = 0;
  Seat* seat = nullptr;  ///< null: on another host
  bool attach = false;   ///< its memory can be reached by cross-memory attach
  Route there, back;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> under_way{0};  ///< operations that the engine has

  // Of the thread that posts.
  uint64_t bytes_there = 0, packets_there = 0, bytes_back = 0, packets_back = 0;

  // Of the engine.
  Order order;
  uint32_t by_datagram = 0;  ///< of those under way
  uint64_t last_back = 0;    ///< when the last get comes home

  [[nodiscard]] bool gone() const {
    return lost.load(std::memory_order_acquire) ||
           (seat != nullptr && seat->session.load(std::memory_order_acquire) != place.session);
  }
};

/// A put or get that was accepted and has not ended.
struct Operation {
  bool put;
  std::shared_ptr<TorusPeer> peer;
  std::shared_ptr<Reach> reach;
  uint64_t offset, bytes;
  std::byte* local;
  std::shared_ptr<Memory> memory;  ///< null: the bytes of a put were copied
  std::vector<std::byte> copied;
  pw_nic_done* done;
  bool by_datagram = false;
  uint64_t received = 0;  ///< of a get by datagrams

  [[nodiscard]] bool of_host() const { return memory == nullptr || memory->kind == PW_NIC_HOST; }
  [[nodiscard]] bool alive() const {
    return memory == nullptr || memory->alive.load(std::memory_order_acquire);
  }
};

using OperationPointer = std::unique_ptr<Operation>;

}  // namespace pw::torus
