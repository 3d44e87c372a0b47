#include "nic/check/talk.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"

namespace pw::nic::check {
namespace {

constexpr uint64_t kLongest = 64u << 20;

void send_all(int socket, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw Error(PW_PEER_LOST, "peerway: the other process of the check is gone");
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

bool receive_all(int socket, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void send_message(int socket, ByteWriter body) {
  const Bytes bytes = body.take();
  ByteWriter head;
  head.put(static_cast<uint64_t>(bytes.size()));
  send_all(socket, head.take());
  send_all(socket, bytes);
}

bool receive_message(int socket, Bytes& body) {
  uint64_t length = 0;
  if (!receive_all(socket, &length, sizeof length) || length > kLongest) return false;
  body.resize(length);
  return receive_all(socket, body.data(), length);
}

}  // namespace

void send(int socket, const Request& request) {
  ByteWriter body;
  body.put(static_cast<uint8_t>(request.ask));
  body.put(request.offset);
  body.put(request.bytes);
  body.put(request.value);
  body.put_text(request.text);
  send_message(socket, std::move(body));
}

void send(int socket, const Reply& reply) {
  ByteWriter body;
  body.put(static_cast<uint32_t>(reply.status));
  body.put(reply.value);
  body.put_text(reply.why);
  body.put(ByteView(reply.bytes));
  send_message(socket, std::move(body));
}

bool receive(int socket, Request& request) {
  Bytes body;
  if (!receive_message(socket, body)) return false;
  ByteReader reader(body, "a request of the check");
  request.ask = static_cast<Ask>(reader.get<uint8_t>());
  request.offset = reader.get<uint64_t>();
  request.bytes = reader.get<uint64_t>();
  request.value = reader.get<uint64_t>();
  request.text = reader.get_text(4096);
  return true;
}

Reply receive_reply(int socket) {
  Bytes body;
  if (!receive_message(socket, body))
    throw Error(PW_PEER_LOST, "peerway: the other process of the check ended; did the plugin crash in it?");
  ByteReader reader(body, "an answer of the check");
  Reply reply;
  reply.status = static_cast<pw_nic_status>(reader.get<uint32_t>());
  reply.value = reader.get<uint64_t>();
  reply.why = reader.get_text(4096);
  const ByteView rest = reader.rest();
  reply.bytes.assign(rest.begin(), rest.end());
  return reply;
}

}  // namespace pw::nic::check
