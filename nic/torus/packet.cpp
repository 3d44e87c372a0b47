#include "torus/packet.h"

#include <bit>
#include <cstring>

#include "torus/file.h"

namespace pw::torus {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is sent as it lies in memory");

constexpr uint32_t kPacketMagic = 0x33545750;  // "PWT3"
static_assert(offsetof(Header, tag) == 0);

Digest tag_of(std::span<const std::byte> datagram, const Secret& key) {
  return siphash(key, datagram.subspan(sizeof(Digest)));
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

void seal(std::span<std::byte> datagram, const Secret& key) {
  std::memcpy(datagram.data() + offsetof(Header, magic), &kPacketMagic, sizeof kPacketMagic);
  const Digest tag = tag_of(datagram, key);
  std::memcpy(datagram.data(), tag.data(), sizeof tag);
}

bool parse_packet(std::span<const std::byte> datagram, Packet& packet) {
  if (datagram.size() < sizeof(Header) || datagram.size() > kMostDatagram) return false;
  std::memcpy(&packet.header, datagram.data(), sizeof(Header));
  packet.payload = datagram.subspan(sizeof(Header));
  return packet.header.magic == kPacketMagic && packet.header.bytes == packet.payload.size() &&
         makes_sense(packet.header);
}

bool is_sealed(std::span<const std::byte> datagram, const Secret& key) {
  Digest tag;
  std::memcpy(tag.data(), datagram.data(), sizeof tag);
  return equal_digests(tag_of(datagram, key), tag);
}

bool open_packet(std::span<const std::byte> datagram, const Secret& key, Packet& packet) {
  return parse_packet(datagram, packet) && is_sealed(datagram, key);
}

}  // namespace pw::torus
