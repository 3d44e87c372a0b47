// Datagrams that a stranger may send to the UDP socket of the torus NIC. Bytes that are not a packet are
// refused; a packet stays within its datagram, and a packet sealed with the job's key is distinguished from
// others.
#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"
#include "torus/file.h"
#include "torus/flow.h"

namespace pw::torus {
namespace {

using fuzz::require;

constexpr Secret kKey{std::byte{1}}, kOther{std::byte{2}};

void use(const Packet& packet, std::span<const std::byte> datagram) {
  const Header& header = packet.header;
  require(header.from < kMostEndpoints && header.to < kMostEndpoints);
  require(packet.payload.size() <= kMostPayload);
  require(sizeof(Header) + packet.payload.size() == datagram.size());
  require(header.offset + packet.payload.size() >= header.offset);
  SendWindow out;
  for (int i = 0; i < 3; ++i) out.push(Datagram(8), nullptr, 1);
  int taken = 0;
  out.acknowledge(header.report, 2, [&](auto&&, auto&&) { ++taken; });
  require(taken <= 3);
  out.resend(3, [](const Datagram&) {});
  out.ask(3, true);
  ReceiveWindow in;
  in.note(header.turn);
  in.arrive(header.sequence, datagram, [](auto) {});
}

}  // namespace

FUZZ(fuzz_torus_packet) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  Packet packet;
  const bool parsed = parse_packet(bytes, packet);
  if (parsed) use(packet, bytes);
  require(!open_packet(bytes, kKey, packet) || parsed);
  if (size < sizeof(Header)) return;
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  seal(sealed, kKey);
  if (open_packet(sealed, kKey, packet)) {
    use(packet, sealed);
    require(!open_packet(sealed, kOther, packet));
  }
}

}  // namespace pw::torus
