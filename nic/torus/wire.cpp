#include "torus/wire.h"

#include <arpa/inet.h>
#include <poll.h>

#include <cerrno>

#include "base/format.h"
#include "base/status.h"
#include "torus/failure.h"

namespace pw::torus {
namespace {

std::string address_text(uint32_t ip, uint16_t port) {
  char text[INET_ADDRSTRLEN];
  return format("{}:{}", inet_ntop(AF_INET, &ip, text, sizeof text), port);
}

// Asks for buffers for a window of packets to each of a few peers; the kernel gives as much as it may.
void widen(int socket) {
  const int bytes = 8 << 20;
  for (const auto& [force, ask] : {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, {SO_SNDBUFFORCE, SO_SNDBUF}})
    if (setsockopt(socket, SOL_SOCKET, force, &bytes, sizeof bytes) != 0)
      setsockopt(socket, SOL_SOCKET, ask, &bytes, sizeof bytes);
}

}  // namespace

Wire::Wire(uint32_t ip, uint16_t port, const Faults& faults, uint64_t seed, Counters& counters)
    : faults_(faults), random_(seed), counters_(counters) {
  address_.sin_family = AF_INET;
  address_.sin_addr.s_addr = ip;
  address_.sin_port = htons(port);
}

void Wire::open() {
  Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socklen_t size = sizeof address_;
  if (!socket || bind(socket.get(), reinterpret_cast<const sockaddr*>(&address_), size) != 0)
    throw Failure(PW_NIC_BROKEN,
                  format("torus: no UDP socket at {}{}",
                         address_text(address_.sin_addr.s_addr, ntohs(address_.sin_port)), lacking(errno)));
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address_), &size) != 0)
    throw Failure(PW_NIC_BROKEN, format("torus: the UDP socket has no address{}", errno_text(errno)));
  widen(socket.get());
  in_ = std::make_unique_for_overwrite<In>();
  socket_ = std::move(socket);
}

void Wire::send(const sockaddr_in& to, std::span<const std::byte> datagram) {
  ++counters_.datagrams;
  counters_.datagram_bytes += datagram.size();
  if (random_.happens(faults_.drop)) {
    ++counters_.dropped;
    return;
  }
  if (random_.happens(faults_.corrupt)) {
    ++counters_.corrupted;
    owned_.push_back(std::make_unique<std::vector<std::byte>>(datagram.begin(), datagram.end()));
    (*owned_.back())[random_.below(datagram.size())] ^= std::byte{1} << random_.below(8);
    datagram = *owned_.back();
  }
  out_.push_back({to, datagram});
  if (random_.happens(faults_.duplicate)) {
    ++counters_.duplicated;
    out_.push_back({to, datagram});
  }
}

void Wire::send_copy(const sockaddr_in& to, std::span<const std::byte, sizeof(Header)> datagram) {
  owned_.push_back(std::make_unique<std::vector<std::byte>>(datagram.begin(), datagram.end()));
  send(to, *owned_.back());
}

void Wire::flush() {
  std::array<mmsghdr, kBatch> messages;
  std::array<iovec, kBatch> pieces;
  for (size_t first = 0; first < out_.size();) {
    const size_t count = std::min<size_t>(kBatch, out_.size() - first);
    for (size_t i = 0; i < count; ++i) {
      Out& out = out_[first + i];
      pieces[i] = {const_cast<std::byte*>(out.bytes.data()), out.bytes.size()};
      messages[i] = {};
      messages[i].msg_hdr.msg_name = &out.to;
      messages[i].msg_hdr.msg_namelen = sizeof out.to;
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(count), 0);
    if (sent > 0) {
      first += static_cast<size_t>(sent);
      continue;
    }
    pollfd ready{socket_.get(), POLLOUT, 0};
    const bool full = errno == EAGAIN || errno == ENOBUFS;
    if (errno == EINTR || (full && poll(&ready, 1, 1) > 0)) continue;
    ++first;  // treated as lost: what matters is sent again
  }
  out_.clear();
  owned_.clear();
}

unsigned Wire::fetch() {
  if (!is_open()) return 0;
  for (unsigned i = 0; i < kBatch; ++i) {
    in_->pieces[i] = {in_->bytes[i].data(), in_->bytes[i].size()};
    in_->messages[i] = {};
    in_->messages[i].msg_hdr.msg_name = &in_->from[i];
    in_->messages[i].msg_hdr.msg_namelen = sizeof in_->from[i];
    in_->messages[i].msg_hdr.msg_iov = &in_->pieces[i];
    in_->messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int count = recvmmsg(socket_.get(), in_->messages.data(), kBatch, 0, nullptr);
  return count > 0 ? static_cast<unsigned>(count) : 0;
}

}  // namespace pw::torus
