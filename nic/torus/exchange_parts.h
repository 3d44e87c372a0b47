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
  uint64_t bytes = 0, cut = 0;  ///< bytes of the message, and how many of them are in packets already
  StagedSource staged;
  uint32_t packets = 0;        ///< number of packets under way
  OperationPointer operation;  ///< the put that this message carries out; else null
};

/// The packets to and from one peer.
struct Exchange::Flow {
  uint32_t number;    ///< endpoint number of the peer
  uint64_t session;   ///< session of the peer
  sockaddr_in to;     ///< address of the peer's socket
  uint64_t heard_at;  ///< ns: when its last datagram arrived
  const EndpointEntry* entry =
      nullptr;                 ///< null unless its process is on this host, where the engine watches it
  bool must_answer = false;    ///< its number has a new owner, so it must show that it lives
  uint64_t waiting_since = 0;  ///< ns: since when an answer is expected from it; 0: none is
  Silence silence;
  uint64_t pinged_at = 0;  ///< ns: when a ping was last sent
  bool owes_ack = false;   ///< whether this end must send an acknowledgement
  SendWindow out;
  ReceiveWindow in;
  StagedTarget staged;                         ///< flushed before acknowledgements are sent
  std::deque<std::shared_ptr<Message>> queue;  ///< messages that are not yet all in packets
  std::map<uint64_t, OperationPointer> gets;   ///< gets that wait for their answer, by `Header::id`

  [[nodiscard]] bool expects_answer() const { return must_answer || !quiet(); }
  [[nodiscard]] bool quiet() const { return out.empty() && queue.empty() && gets.empty(); }
};

}  // namespace pw::torus
