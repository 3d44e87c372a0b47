// The data that an exchange keeps for each peer: the flow of packets, and the messages that wait to be cut
// into packets.
#pragma once

#include "torus/exchange.h"
#include "torus/staging.h"

namespace pw::torus {

/// A message that is cut into packets: a put, the request for a get, or the answer to one.
struct Exchange::Message {
  Kind kind;
  Header header;                   ///< fields that all its packets share
  std::shared_ptr<Memory> memory;  ///< memory of the bytes; null: there are none, or the operation has a copy
  const std::byte* from = nullptr;
  uint64_t bytes = 0, cut = 0;
  StagedSource staged;
  uint32_t packets = 0;        ///< number of packets under way
  OperationPointer operation;  ///< of a put
};

struct Exchange::Flow {
  uint32_t number;
  uint64_t session;
  sockaddr_in to;
  uint64_t heard;
  const EndpointEntry* entry =
      nullptr;           ///< null unless its process is on this host, where the engine watches it
  bool doubted = false;  ///< its number has a new owner, so it must show that it lives
  uint64_t wanting = 0;  ///< since when something is expected from it; 0: nothing is
  Silence silence;
  uint64_t pinged = 0;
  bool owes_ack = false;
  SendWindow out;
  ReceiveWindow in;
  StagedTarget staged;  ///< flushed before acknowledgements are sent
  std::deque<std::shared_ptr<Message>> queue;
  std::map<uint64_t, OperationPointer> gets;

  [[nodiscard]] bool owed() const { return doubted || !quiet(); }
  [[nodiscard]] bool quiet() const { return out.empty() && queue.empty() && gets.empty(); }
};

}  // namespace pw::torus
