// One end's work on a staged transfer: queues that copy between a ring of chunks in host memory and the
// memory of devices, and the walk over the chunks. Both ends walk the same layout with the same ChunkCursor,
// so a chunk needs no header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "device/device.h"
#include "device/shape.h"

namespace pw {

/// The queues that copy between a ring and memory: one for each device, made at its first use.
class RingQueues {
 public:
  explicit RingQueues(void* ring) : ring_(ring) {}
  ~RingQueues();  ///< waits until no copy is under way; the ring may be unmapped afterwards
  RingQueues(const RingQueues&) = delete;

  /// Selects the queue for memory of `device`, which works in the first `bytes` of the ring, so that no more
  /// need be pinned. Returns null while the previous queue still works: ask again. (Only one queue at a time
  /// may write the ring's counters, since they must only grow.) Throws Error if the ring cannot be pinned for
  /// the device, or if the previous queue failed.
  Queue* use(Device& device, uint64_t bytes);

  /// Whether the queue in use has done all its work or has failed.
  bool idle();

 private:
  struct RingQueue {
    std::unique_ptr<Queue> queue;
    uint64_t pinned = 0;  ///< bytes of the ring that are pinned for its device
  };
  void pin(Device& device, RingQueue& entry, uint64_t bytes);

  void* ring_;
  std::map<Device*, RingQueue> queues_;
  Queue* in_use_ = nullptr;
};

/// Walks one end's memory chunk by chunk, in the order in which the chunks pass the ring.
class ChunkWalk {
 public:
  /// `fill`: bytes go from memory into the ring. `first` is the address of the transfer's first byte; null:
  /// the chunks are passed without their bytes, so that the other end need not wait for them.
  void begin(bool fill, const Layout& layout, uint64_t chunk_bytes, std::byte* first, Queue* queue);

  [[nodiscard]] bool fills() const { return fill_; }
  [[nodiscard]] bool has_chunk() const { return has_chunk_; }
  [[nodiscard]] uint64_t bytes() const { return chunk_.layout.shape.bytes(); }  ///< of this chunk

  /// Starts the copy between this chunk's place in memory and its slot of the ring, and moves to the next
  /// chunk. After a failure the remaining chunks are passed without their bytes.
  pw_status copy(std::byte* slot);

  void leave_memory() { first_ = nullptr; }  ///< the remaining chunks are passed without their bytes
  [[nodiscard]] bool has_memory() const { return first_ != nullptr; }

 private:
  bool fill_ = false;
  std::byte* first_ = nullptr;
  Queue* queue_ = nullptr;
  ChunkCursor cursor_;
  Chunk chunk_;
  bool has_chunk_ = false;
};

}  // namespace pw
