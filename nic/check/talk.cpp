#include "nic/check/talk.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace pw::nic::check {
namespace {

constexpr uint64_t kLongest = 1u << 20;
constexpr uint32_t kLongestText = 1u << 16;

bool send_all(int socket, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
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

bool send_message(int socket, ByteWriter body) {
  const Bytes bytes = body.take();
  ByteWriter head;
  head.put(static_cast<uint64_t>(bytes.size()));
  return send_all(socket, head.take()) && send_all(socket, bytes);
}

bool receive_message(int socket, Bytes& body) {
  uint64_t length = 0;
  if (!receive_all(socket, &length, sizeof length) || length > kLongest) return false;
  body.resize(length);
  return receive_all(socket, body.data(), length);
}

template <typename Named>
Named read_named(ByteReader& from) {
  Named named;
  std::memcpy(&named, from.take(sizeof named).data(), sizeof named);
  return named;
}

}  // namespace

// Copies them unchecked: their lengths may be wrong, and the process that got them from the plugin checks
// them.
void write(ByteWriter& to, const pw_nic_address& address) { to.put(std::as_bytes(std::span(&address, 1))); }
void write(ByteWriter& to, const pw_nic_key& key) { to.put(std::as_bytes(std::span(&key, 1))); }
pw_nic_address read_address(ByteReader& from) { return read_named<pw_nic_address>(from); }
pw_nic_key read_key(ByteReader& from) { return read_named<pw_nic_key>(from); }

bool send(int socket, const Command& request) {
  ByteWriter body;
  body.put(static_cast<uint8_t>(request.kind));
  body.put(request.value);
  body.put(ByteView(request.bytes));
  return send_message(socket, std::move(body));
}

bool send(int socket, const Reply& reply) {
  ByteWriter body;
  body.put(static_cast<uint32_t>(reply.status));
  body.put(reply.value);
  body.put_text(reply.why);
  body.put(ByteView(reply.bytes));
  return send_message(socket, std::move(body));
}

bool send(int socket, const TestReport& report) {
  ByteWriter body;
  body.put(report.test);
  body.put(static_cast<uint8_t>(report.ended));
  body.put(static_cast<uint8_t>(report.outcome));
  body.put_text(report.evidence);
  return send_message(socket, std::move(body));
}

bool receive(int socket, Command& request) {
  Bytes body;
  if (!receive_message(socket, body)) return false;
  ByteReader reader(body, "a request of the tests");
  request.kind = static_cast<CommandKind>(reader.get<uint8_t>());
  request.value = reader.get<uint64_t>();
  const ByteView rest = reader.rest();
  request.bytes.assign(rest.begin(), rest.end());
  return true;
}

bool receive(int socket, Reply& reply) {
  Bytes body;
  if (!receive_message(socket, body)) return false;
  ByteReader reader(body, "an answer of the tests");
  reply.status = static_cast<pw_nic_status>(reader.get<uint32_t>());
  reply.value = reader.get<uint64_t>();
  reply.why = reader.get_text(kLongestText);
  const ByteView rest = reader.rest();
  reply.bytes.assign(rest.begin(), rest.end());
  return true;
}

bool receive(int socket, TestReport& report) {
  Bytes body;
  if (!receive_message(socket, body)) return false;
  ByteReader reader(body, "a finding of the tests");
  report.test = reader.get<uint32_t>();
  report.ended = reader.get<uint8_t>() != 0;
  report.outcome = static_cast<Outcome>(reader.get<uint8_t>());
  report.evidence = reader.get_text(kLongestText);
  return true;
}

}  // namespace pw::nic::check
