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

  /// Messages from now on are sealed with this key, outgoing, or must be, incoming, and are numbered from
  /// 0.
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

  /// Sends as much as the socket takes now. False: the other end is gone.
  bool write();
  [[nodiscard]] bool unsent() const { return !outgoing_.empty(); }

  /// Reads what has arrived, at most `most` bytes a call. False: the other end is gone; messages that
  /// came before may still be there.
  bool read(size_t most = size_t{1} << 20);

  /// The next complete message. Throws Error(PW_INVALID_ARGUMENT) for what is no message, for a payload above
  /// `limit`, and Error(PW_DENIED) for a wrong seal; the connection must then be dropped.
  std::optional<Message> next(size_t limit);

  /// Frees the receive buffer if it is empty.
  void let_go();
  [[nodiscard]] size_t held() const { return incoming_.capacity(); }  ///< bytes of that

  /// Checks a message that came before seal_incoming() as the first of that direction.
  bool opens_with(const Message& message, const Secret& key);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Ends sending; the socket can still be read. On TCP, closing a socket with unread data would drop what
  /// it has sent and has not arrived.
  void finish();
  /// Reads and drops what has arrived. False: the other end has ended.
  bool drain();
  void close() { socket_.reset(); }

 private:
  Descriptor socket_;
  Bytes incoming_;
  size_t consumed_ = 0;
  std::deque<SharedBytes> outgoing_;
  size_t written_ = 0;  ///< of the first outgoing
  std::optional<Secret> outgoing_key_, incoming_key_;
  uint64_t sealed_out_ = 0, sealed_in_ = 0;
};

}  // namespace pw
