// A staging channel: a ring of chunks in shared host memory between one initiator and the service of one
// target, with a queue of requests beside it. For a put the initiator fills chunks and the target drains
// them; for a get the other way round.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/staged/chunks.h"
#include "transport/staged/request.h"

namespace pw {

inline constexpr uint32_t kRequests = 64;

/// How a request cuts the ring: its first `ring_bytes` into slots of `chunk_bytes`.
struct Cut {
  uint64_t chunk_bytes = 0;
  uint64_t ring_bytes = 0;

  [[nodiscard]] uint64_t slots() const { return ring_bytes / chunk_bytes; }
  bool operator==(const Cut&) const = default;
};

/// A request as it lies in the channel.
struct PostedRequest {
  StagedRequest request;
  Cut cut;
  bool notify;  ///< store `notified` to signal word `word` of the target's control segment afterwards
  uint32_t word;
  uint64_t notified;
  uint32_t signal_slot;  ///< of that signal, which may have been closed by then
  uint64_t signal_generation;
};

/// Lives in the initiator's memfd, before the chunks. Counters only grow. Zero-filled memory is an empty
/// channel.
struct ChannelHeader {
  alignas(64) std::atomic<uint64_t> requested;  ///< requests posted by the initiator
  alignas(64) std::atomic<uint64_t> completed;  ///< requests served; the data is visible at its target
  alignas(64) std::atomic<uint64_t> filled;     ///< chunks filled by the sending end
  alignas(64) std::atomic<uint64_t> drained;    ///< chunks drained by the receiving end
  alignas(64) std::atomic<uint64_t> failed;     ///< failure_word of the requests that could not be served
  std::atomic<uint32_t> attached;               ///< 1 once the target serves this channel
  std::atomic<uint32_t> released;               ///< 1 once the initiator has let go of it
  std::atomic<uint32_t> initiator_waits;        ///< 1: ring it once the target has moved on
  std::atomic<uint64_t> abandoned;              ///< the request with that number + 1 lacks bytes
  PostedRequest request[kRequests];
};

/// Bytes of the ring. Before requests cut it in another way it is drained.
inline constexpr uint64_t kRingBytes = uint64_t{8} << 20;
inline constexpr uint64_t kRingOffset = (sizeof(ChannelHeader) + 4095) / 4096 * 4096;
inline constexpr uint64_t kChannelBytes = kRingOffset + kRingBytes;

/// A channel as one of its two processes sees it, and that end's half of the transfers.
class ChannelEnd {
 public:
  /// `mapped` is unmapped with the end, once no copy is under way.
  explicit ChannelEnd(void* mapped) : header_(static_cast<ChannelHeader*>(mapped)) {}

  [[nodiscard]] ChannelHeader& header() const { return *header_; }

  /// From now on the ring is cut so, and the queue for memory of `device` copies chunks and writes the
  /// counters. False while another queue still does: ask again. Throws Error.
  bool use(Device& device, const Cut& cut);
  [[nodiscard]] Queue& queue() const { return *queue_; }
  /// Whether no queue is at work, so that nothing uses the memory that it copies, and to destroy this does
  /// not wait.
  bool idle() { return queues_.idle(); }

  /// The next transfer; its bytes are at `first` (ChunkWalk::begin), on the device in use.
  void begin(bool fill, const Layout& layout, std::byte* first);

  [[nodiscard]] bool has_chunk() const { return walk_.has_chunk(); }
  [[nodiscard]] bool ready() const;  ///< the other end has left room for the next chunk, or has filled it
  pw_status pass(int peer);          ///< starts the next chunk's copy and what tells the other end of it
  [[nodiscard]] uint64_t passed() const { return passed_; }
  void leave_memory() { walk_.leave_memory(); }

 private:
  struct Unmap {
    void operator()(ChannelHeader* header) const;
  };
  [[nodiscard]] std::byte* slot() const;

  std::unique_ptr<ChannelHeader, Unmap> header_;
  RingQueues queues_{header_.get()};
  Queue* queue_ = nullptr;
  ChunkWalk walk_;
  Cut cut_;
  uint64_t passed_ = 0;  ///< chunks of all transfers
};

}  // namespace pw
