// A staging channel: a ring of chunks in shared host memory between one initiator and the service thread of
// one target, with a queue of requests beside it. For a put the initiator fills chunks and the target drains
// them; for a get the other way round. Both walk the same layout with the same ChunkCursor, so that a chunk
// needs no header.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/shape.h"
#include "path/path.h"

namespace pw {

inline constexpr uint32_t kRequests = 64;

/// What the initiator asks of the target's service thread.
struct Request {
  Op op;
  uint32_t slot;  ///< of the target's region
  uint64_t generation;
  uint64_t offset;  ///< of the first byte in the target's region
  Layout layout;    ///< as in Transfer
  uint64_t chunk_bytes;
  uint32_t raise;  ///< 1: store `raised` to signal word `word` of the target's control segment afterwards
  uint32_t word;
  uint64_t raised;
  uint32_t signal_slot;  ///< of that signal, which may have been closed by then
  uint64_t signal_generation;
};

/// Lives in the initiator's memfd, before the chunks. Counters only grow. Zero-filled memory is an empty
/// channel.
struct ChannelHeader {
  alignas(64) std::atomic<uint64_t> requested;  ///< requests posted by the initiator
  alignas(64) std::atomic<uint64_t> completed;  ///< requests served; the data is visible at its target
  alignas(64) std::atomic<uint64_t> filled;     ///< chunks filled by whoever fills
  alignas(64) std::atomic<uint64_t> drained;    ///< chunks drained by whoever drains
  alignas(64) std::atomic<uint64_t> failed;     ///< requests that could not be served
  std::atomic<uint32_t> failure;                ///< pw_status of the last of them
  std::atomic<uint32_t> attached;               ///< 1 once the target serves this channel
  std::atomic<uint32_t> left;                   ///< 1 once the initiator has let go of it
  Request request[kRequests];
};

/// Bytes of the ring. A request cuts it into slots of its own chunk size; before the size changes the ring is
/// drained.
inline constexpr uint64_t kRingBytes = uint64_t{8} << 20;
inline constexpr uint64_t kRingOffset = (sizeof(ChannelHeader) + 4095) / 4096 * 4096;
inline constexpr uint64_t kChannelBytes = kRingOffset + kRingBytes;

inline std::byte* chunk_at(ChannelHeader* header, uint64_t sequence, uint64_t chunk_bytes) {
  return reinterpret_cast<std::byte*>(header) + kRingOffset +
         sequence % (kRingBytes / chunk_bytes) * chunk_bytes;
}

/// The copy between a chunk and its place in a region. `region` is the address of the request's first byte
/// there; with `fill` the bytes go from the region into the chunk. `region_is_to` tells which side of the
/// layout the region is.
Copy chunk_copy(const Chunk& chunk, std::byte* bytes, std::byte* region, bool fill, bool region_is_to);

}  // namespace pw
