// One connection between two ends of a team: sealed messages in both directions over a non-blocking socket.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/descriptor.h"
#include "team/message.h"

namespace pw {

struct Message {
  wire::Type type = wire::Type::hello;
  Bytes payload;
  wire::HeaderBytes header{};
  Digest seal{};
};

using SharedBytes = std::shared_ptr<const Bytes>;

class Channel {
 public:
  Channel() = default;
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  /// From now on outgoing messages are sealed with this key, or incoming messages must be. Numbers start
  /// again at 0.
  void seal_outgoing(const Secret& key) {
    outgoing_key_ = key;
    sealed_out_ = 0;
  }
  void seal_incoming(const Secret& key) {
    incoming_key_ = key;
    sealed_in_ = 0;
  }

  /// Queues a message; write() sends it. The second form shares a large payload among connections.
  void queue(wire::Type type, Bytes payload = {});
  void queue(wire::Type type, SharedBytes payload);

  /// Sends as much as the socket takes now. Returns false if the other end is gone.
  bool write();
  [[nodiscard]] bool unsent() const { return !outgoing_.empty(); }

  /// Reads what has arrived, at most `most` bytes per call. Returns false if the other end is gone; messages
  /// that arrived before may still be available.
  bool read(size_t most = size_t{1} << 20);

  /// Returns the next complete message. Throws Error(PW_INVALID_ARGUMENT) for bytes that are not a message or
  /// a payload above `limit`, and Error(PW_DENIED) for a wrong seal; the connection must then be dropped.
  std::optional<Message> next(size_t limit);

  /// Frees the receive buffer if it is empty.
  void let_go();
  [[nodiscard]] size_t held() const { return incoming_.capacity(); }  ///< capacity of the receive buffer

  /// Checks whether a message that arrived before seal_incoming() has the seal of the first message with this
  /// key.
  bool opens_with(const Message& message, const Secret& key);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Ends sending; the socket can still be read. On TCP, closing a socket with unread data would drop sent
  /// data that has not arrived.
  void finish();
  /// Reads and drops what has arrived. Returns false if the other end has closed the connection.
  bool drain();
  void close() { socket_.reset(); }

 private:
  Descriptor socket_;
  Bytes incoming_;
  size_t consumed_ = 0;
  std::deque<SharedBytes> outgoing_;
  size_t written_ = 0;  ///< bytes of the first outgoing message
  std::optional<Secret> outgoing_key_, incoming_key_;
  uint64_t sealed_out_ = 0, sealed_in_ = 0;
};

}  // namespace pw
