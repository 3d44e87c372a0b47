#include "torus/packet.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "torus/file.h"

namespace pw::torus {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is sent as it lies in memory");

constexpr uint32_t kPacketMagic = 0x32545750;  // "PWT2"
constexpr size_t kChecksumAt = offsetof(Header, checksum);

// Of the header, with the hash of the payload in the checksum's place: nothing is copied but the header.
uint64_t checksum_of(std::span<const std::byte> datagram, const Secret& key) {
  std::array<std::byte, sizeof(Header)> header;
  std::memcpy(header.data(), datagram.data(), sizeof header);
  const uint64_t payload = first_word(siphash(key, datagram.subspan(sizeof header)));
  std::memcpy(header.data() + kChecksumAt, &payload, sizeof payload);
  return first_word(siphash(key, header));
}

bool sequenced(Kind kind) { return kind >= Kind::put; }

bool makes_sense(const Header& header) {
  if (header.kind > Kind::refused || header.from >= kMostEndpoints || header.to >= kMostEndpoints)
    return false;
  if (sequenced(header.kind) != (header.sequence != 0)) return false;
  const bool carries = header.kind == Kind::put || header.kind == Kind::data;
  if (!carries && header.bytes != 0) return false;
  if (header.offset + header.bytes < header.offset || header.offset + header.total < header.offset)
    return false;
  return true;
}

}  // namespace

Secret packet_key(uint64_t job) {
  Secret base{};
  const std::string_view name = "peerway torus";
  std::memcpy(base.data(), name.data(), name.size());
  return siphash(base, std::as_bytes(std::span(&job, 1)));
}

void seal(std::span<std::byte> datagram, const Secret& key) {
  std::memcpy(datagram.data(), &kPacketMagic, sizeof kPacketMagic);
  const uint64_t checksum = checksum_of(datagram, key);
  std::memcpy(datagram.data() + kChecksumAt, &checksum, sizeof checksum);
}

bool parse_packet(std::span<const std::byte> datagram, Packet& packet) {
  if (datagram.size() < sizeof(Header) || datagram.size() > kMostDatagram) return false;
  std::memcpy(&packet.header, datagram.data(), sizeof(Header));
  packet.payload = datagram.subspan(sizeof(Header));
  return packet.header.magic == kPacketMagic && packet.header.bytes == packet.payload.size() &&
         makes_sense(packet.header);
}

bool open_packet(std::span<const std::byte> datagram, const Secret& key, Packet& packet) {
  return parse_packet(datagram, packet) && checksum_of(datagram, key) == packet.header.checksum;
}

}  // namespace pw::torus
