// The UDP socket of an endpoint: datagrams in batches, with injected faults.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "torus/counters.h"
#include "torus/file.h"
#include "torus/packet.h"
#include "torus/random.h"

namespace pw::torus {

class Wire {
 public:
  /// Sends from an address of this host; port 0 takes any free port. Nobody can send to it before open().
  Wire(uint32_t ip, uint16_t port, const Faults& faults, uint64_t seed, Counters& counters);

  void open();  ///< Throws Failure
  [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] uint16_t port() const { return is_open() ? address_.sin_port : uint16_t{0}; }

  /// Queues a sealed datagram; its bytes must stay valid until flush().
  void send(const sockaddr_in& to, std::span<const std::byte> datagram);
  /// The same for a bare header, which is copied.
  void send_copy(const sockaddr_in& to, std::span<const std::byte, sizeof(Header)> datagram);
  void flush();

  /// Calls `take(datagram, from)` for what has arrived, at most a batch. Returns how many.
  template <typename Take>
  unsigned receive(Take&& take);

 private:
  static constexpr unsigned kBatch = 16;
  struct Out {
    sockaddr_in to;
    std::span<const std::byte> bytes;
  };
  struct In {
    // One byte more, so that longer datagrams are recognised.
    std::array<std::array<std::byte, kMostDatagram + 1>, kBatch> bytes;
    std::array<sockaddr_in, kBatch> from;
    std::array<iovec, kBatch> pieces;
    std::array<mmsghdr, kBatch> messages;
  };
  unsigned fetch();

  Descriptor socket_;
  sockaddr_in address_{};
  const Faults& faults_;
  Random random_;
  Counters& counters_;
  std::vector<Out> out_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> owned_;  ///< copies for send_copy() and for damaged
                                                                ///< datagrams
  std::unique_ptr<In> in_ = nullptr;
};

template <typename Take>
unsigned Wire::receive(Take&& take) {
  const unsigned count = fetch();
  for (unsigned i = 0; i < count; ++i)
    take(std::span<const std::byte>(in_->bytes[i]).first(in_->messages[i].msg_len), in_->from[i]);
  return count;
}

}  // namespace pw::torus
