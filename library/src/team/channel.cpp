#include "team/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pw {

using namespace wire;

void Channel::queue(Type type, Bytes payload) {
  queue(type, std::make_shared<const Bytes>(std::move(payload)));
}

void Channel::queue(Type type, SharedBytes payload) {
  const HeaderBytes header = pack_header(type, payload->size());
  Digest digest{};
  if (outgoing_key_) digest = seal(*outgoing_key_, sealed_out_++, header, *payload);
  Bytes front(header.begin(), header.end());
  front.insert(front.end(), digest.begin(), digest.end());
  outgoing_.push_back(std::make_shared<const Bytes>(std::move(front)));
  if (!payload->empty()) outgoing_.push_back(std::move(payload));
}

bool Channel::write() {
  while (!outgoing_.empty()) {
    const Bytes& first = *outgoing_.front();
    const ssize_t count =
        ::send(socket_.get(), first.data() + written_, first.size() - written_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    written_ += static_cast<size_t>(count);
    if (written_ < first.size()) continue;
    outgoing_.pop_front();
    written_ = 0;
  }
  return true;
}

void Channel::finish() { ::shutdown(socket_.get(), SHUT_WR); }

bool Channel::drain() {
  std::array<std::byte, 4096> piece;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN || errno == EWOULDBLOCK;
  }
}

bool Channel::read(size_t most) {
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<ptrdiff_t>(consumed_));
  consumed_ = 0;
  std::array<std::byte, size_t{64} << 10> piece;
  for (size_t remaining = most; remaining > 0;) {
    // The buffer grows by the bytes that arrive, never by the size that a header announces.
    const ssize_t count = ::recv(socket_.get(), piece.data(), std::min(piece.size(), remaining), 0);
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count < 0) continue;
    incoming_.insert(incoming_.end(), piece.begin(), piece.begin() + count);
    remaining -= static_cast<size_t>(count);
  }
  return true;
}

void Channel::let_go() {
  if (consumed_ < incoming_.size()) return;
  incoming_ = Bytes();  // `= {}` would keep its memory
  consumed_ = 0;
}

std::optional<Message> Channel::next(size_t limit) {
  const ByteView remaining = ByteView(incoming_).subspan(consumed_);
  if (remaining.size() < kHeaderBytes) return std::nullopt;
  Message message;
  std::copy_n(remaining.begin(), kHeaderBytes, message.header.begin());
  const Header header = parse_header(message.header, limit);
  const size_t total = kHeaderBytes + kSealBytes + header.bytes;
  if (remaining.size() < total) return std::nullopt;

  message.type = header.type;
  std::copy_n(remaining.begin() + kHeaderBytes, kSealBytes, message.seal.begin());
  const ByteView payload = remaining.subspan(kHeaderBytes + kSealBytes, header.bytes);
  message.payload.assign(payload.begin(), payload.end());
  consumed_ += total;
  if (incoming_key_ &&
      !equal_digests(message.seal, seal(*incoming_key_, sealed_in_++, message.header, payload)))
    throw Error(PW_DENIED, "a message was not sealed with this job's secret");
  return message;
}

bool Channel::opens_with(const Message& message, const Secret& key) {
  if (!equal_digests(message.seal, seal(key, 0, message.header, message.payload))) return false;
  incoming_key_ = key;
  sealed_in_ = 1;
  return true;
}

}  // namespace pw
