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

/// How a request divides the ring: the first `ring_bytes` are slots of `chunk_bytes`.
struct RingDivision {
  uint64_t chunk_bytes = 0;
  uint64_t ring_bytes = 0;

  [[nodiscard]] uint64_t slots() const { return ring_bytes / chunk_bytes; }
  bool operator==(const RingDivision&) const = default;
};

/// A request as it is stored in the channel.
struct PostedRequest {
  StagedRequest request;
  RingDivision division;
  bool notify;  ///< store `notified` to signal word `word` of the target's control segment afterwards
  uint32_t word;
  uint64_t notified;
  uint32_t signal_slot;  ///< of that signal, which may be closed by then
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
  std::atomic<uint32_t> released;               ///< 1 once the initiator no longer uses it
  std::atomic<uint32_t> initiator_waits;  ///< 1: the target must write to the initiator's wakeup pipe once
                                          ///< it has made progress
  std::atomic<uint64_t> abandoned;        ///< the request with this number + 1 is passed without bytes
  PostedRequest request[kRequests];
};

/// Bytes of the ring. It is drained before a request divides it in another way.
inline constexpr uint64_t kRingBytes = uint64_t{8} << 20;
inline constexpr uint64_t kRingOffset = (sizeof(ChannelHeader) + 4095) / 4096 * 4096;
inline constexpr uint64_t kChannelBytes = kRingOffset + kRingBytes;

/// One process's end of a channel, and its half of the transfers.
class ChannelEnd {
 public:
  /// `mapped` is unmapped in the destructor, once no copy is under way.
  explicit ChannelEnd(void* mapped) : header_(static_cast<ChannelHeader*>(mapped)) {}

  [[nodiscard]] ChannelHeader& header() const { return *header_; }

  /// Divides the ring as `division` says and selects the queue for memory of `device`, which copies chunks
  /// and writes the counters. Returns false while another queue still works: ask again. Throws Error.
  bool use(Device& device, const RingDivision& division);
  [[nodiscard]] Queue& queue() const { return *queue_; }
  /// Whether no queue is working. Then nothing uses the memory that it copies, and the destructor does not
  /// wait.
  bool idle() { return queues_.idle(); }

  /// Begins the next transfer; its bytes are at `first` (ChunkWalk::begin), on the device in use.
  void begin(bool fill, const Layout& layout, std::byte* first);

  [[nodiscard]] bool has_chunk() const { return walk_.has_chunk(); }
  [[nodiscard]] bool ready() const;  ///< whether the other end has drained, or filled, the slot of the next
                                     ///< chunk
  pw_status pass(int peer);  ///< starts the copy of the next chunk, after which the queue tells the other end
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
  RingDivision division_;
  uint64_t passed_ = 0;  ///< number of chunks, over all transfers
};

}  // namespace pw
