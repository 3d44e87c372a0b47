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
inline constexpr uint32_t kWindow = 256;  ///< sequenced packets under way to a peer

enum class Kind : uint16_t {
  ack,      ///< nothing else
  ping,     ///< asks for an ack
  bye,      ///< the sender closes
  put,      ///< payload for `offset` of the memory (slot, generation)
  get,      ///< asks for `total` bytes at `offset` of the memory; the answer bears `id`
  data,     ///< payload at `offset` of the answer to get `id`
  refused,  ///< the memory that get `id` names is not there
};

/// An endpoint's report of the packets that it got from the other one.
struct Report {
  uint64_t acknowledged;            ///< all up to this one were taken
  std::array<uint64_t, 4> arrived;  ///< bit i: acknowledged + 1 + i is there as well
  uint64_t newest;                  ///< the highest turn that arrived
};

/// Packets from `put` on bear a sequence number, 1 and up, and are taken in that order.
struct Header {
  Digest tag;  ///< of all that follows, under the job's key
  uint32_t magic;
  Kind kind;
  uint16_t bytes;     ///< of the payload
  uint32_t from, to;  ///< numbers of the endpoints
  uint64_t from_session, to_session;
  uint64_t sequence;  ///< 0: none
  uint64_t turn;      ///< grows with everything that is sent, also with what is sent again; 0: none
  Report report;
  uint32_t slot, generation;
  uint64_t offset, id, total;
};
static_assert(sizeof(Header) == 144 && kWindow == 64 * 4);

inline constexpr size_t kMostDatagram = sizeof(Header) + kMostPayload;

struct Packet {
  Header header;
  std::span<const std::byte> payload;  ///< lies in what was parsed
};

/// Completes magic and tag of a datagram that begins with its header.
void seal(std::span<std::byte> datagram, const Secret& key);

/// Whether the bytes are a packet that makes sense; of the tag it says nothing.
bool parse_packet(std::span<const std::byte> datagram, Packet& packet);

/// Whether such a datagram is from this job, and undamaged.
bool is_sealed(std::span<const std::byte> datagram, const Secret& key);

/// Both.
bool open_packet(std::span<const std::byte> datagram, const Secret& key, Packet& packet);

}  // namespace pw::torus
