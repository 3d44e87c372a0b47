// Datagrams between endpoints: a header, up to 8 KiB of payload, and a tag that only holders of the job's key
// can make. So damaged datagrams, and those of strangers, are recognised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/siphash.h"

namespace pw::torus {

inline constexpr uint32_t kMostPayload = 8192;
inline constexpr uint32_t kWindow = 256;  ///< limit of sequenced packets under way to a peer

enum class Kind : uint16_t {
  ack,      ///< only the report in the header
  ping,     ///< asks for an ack
  bye,      ///< the sender closes
  put,      ///< payload for `offset` of the memory (slot, generation)
  get,      ///< asks for `total` bytes at `offset` of the memory; the answer has the same `id`
  data,     ///< payload at `offset` of the answer to get `id`
  refused,  ///< the memory of get `id` is not registered
};

/// An endpoint's report about the packets that it received from the other endpoint.
struct Report {
  uint64_t acknowledged;            ///< all packets up to this number were taken
  std::array<uint64_t, 4> arrived;  ///< bit i: packet acknowledged + 1 + i has arrived, too
  uint64_t newest;                  ///< highest `turn` that arrived
};

/// Packets of the kinds from `put` on have a sequence number, counted from 1, and are taken in that order.
struct Header {
  Digest tag;  ///< of everything after it, with the job's key
  uint32_t magic;
  Kind kind;
  uint16_t bytes;     ///< of the payload
  uint32_t from, to;  ///< numbers of the endpoints
  uint64_t from_session, to_session;
  uint64_t sequence;  ///< 0: none
  uint64_t turn;      ///< number of the transmission; also grows with retransmissions; 0: none
  Report report;
  uint32_t slot, generation;
  uint64_t offset, id, total;
};
static_assert(sizeof(Header) == 144 && kWindow == 64 * 4);

inline constexpr size_t kMostDatagram = sizeof(Header) + kMostPayload;

struct Packet {
  Header header;
  std::span<const std::byte> payload;  ///< points into the parsed datagram
};

/// Fills in magic and tag of a datagram that begins with its header.
void seal(std::span<std::byte> datagram, const Secret& key);

/// Whether the bytes are a valid packet; does not check the tag.
bool parse_packet(std::span<const std::byte> datagram, Packet& packet);

/// Whether the tag shows that the datagram is from this job and undamaged.
bool is_sealed(std::span<const std::byte> datagram, const Secret& key);

/// Does both checks.
bool open_packet(std::span<const std::byte> datagram, const Secret& key, Packet& packet);

}  // namespace pw::torus
