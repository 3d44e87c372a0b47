#include "torus/packet.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "torus/file.h"

namespace pw::torus {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is sent as it lies in memory");

constexpr uint32_t kPacketMagic = 0x31545750;  // "PWT1"
constexpr size_t kChecksumAt = offsetof(Header, checksum);

// The checksum's place holds 0 while it is made.
uint64_t checksum_of(std::span<std::byte> datagram, const Secret& key) {
  std::memset(datagram.data() + kChecksumAt, 0, sizeof(uint64_t));
  return first_word(siphash(key, datagram));
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
  if (!parse_packet(datagram, packet)) return false;
  std::array<std::byte, kMostDatagram> copy;  // 8 KiB, a fraction of what the hash costs
  std::memcpy(copy.data(), datagram.data(), datagram.size());
  return checksum_of(std::span(copy).first(datagram.size()), key) == packet.header.checksum;
}

}  // namespace pw::torus
