// Fuzzes messages and tickets, as anybody may send them who reaches the bootstrap server's socket, or can
// write where a ticket is read.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "team/channel.h"
#include "team/socket.h"
#include "team/ticket.h"

namespace pw::fuzz {

namespace {

/// Refusing is right; anything else but a clean parse is not.
void try_to(auto&& parse) {
  try {
    parse();
  } catch (const Error&) {
  }
}

void parse_payload(ByteView bytes) {
  using namespace wire;
  const uint32_t size = bytes.empty() ? 1 : static_cast<uint32_t>(bytes[0]) % 8 + 1;
  try_to([&] { pack(parse_hello(bytes)); });
  try_to([&] { pack(parse_challenge(bytes)); });
  try_to([&] { pack(parse_join(bytes)); });
  try_to([&] { pack(parse_welcome(bytes, size)); });
  try_to([&] { pack(parse_refuse(bytes)); });
  try_to([&] { pack(parse_numbered(bytes)); });
  try_to([&] { pack(parse_contribution(bytes)); });
  try_to([&] { pack(parse_exchange_part(bytes)); });
  try_to([&] { pack(parse_failure(bytes)); });
  try_to([&] { pack(parse_loss(bytes, size)); });
  try_to([&] { pack_fence(parse_fence(bytes)); });
}

/// Messages as a stream: whatever arrives, a channel returns messages within the limit or refuses them.
void parse_stream(ByteView bytes) {
  auto [ours, theirs] = socket_pair();
  if (::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    return;
  theirs.reset();
  Channel channel(std::move(ours));
  channel.read();
  try_to([&] {
    while (const auto message = channel.next(wire::kMaxHandshake)) {
      if (message->payload.size() > wire::kMaxHandshake) __builtin_trap();
      parse_payload(message->payload);
      if (channel.opens_with(*message, Secret{std::byte{1}})) __builtin_trap();  // nobody guesses a seal
    }
  });
}

}  // namespace

FUZZ(fuzz_rendezvous) {
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  parse_payload(bytes);
  parse_stream(bytes.first(std::min(size, size_t{65536})));
  try_to([&] {
    const Ticket ticket = parse_ticket({reinterpret_cast<const char*>(data), size}, "the input");
    parse_ticket(format_ticket(ticket), "what was formatted");  // must read what it wrote
  });
}

}  // namespace pw::fuzz
