#include "transport/staged/chunks.h"

#include "base/status.h"
#include "transport/path.h"

namespace pw {
namespace {

// Returns the copy between a chunk, which is dense, and its place in memory. That place is the `from` side of
// the layout when the ring is filled, and the `to` side when it is drained.
Copy copy_of(const Chunk& chunk, std::byte* slot, std::byte* first, bool fill) {
  const Strides dense = dense_strides(chunk.layout.shape);
  if (fill) return {slot, first + chunk.from_offset, {chunk.layout.shape, dense, chunk.layout.from}};
  return {first + chunk.to_offset, slot, {chunk.layout.shape, chunk.layout.to, dense}};
}

}  // namespace

RingQueues::~RingQueues() {
  for (auto& [device, entry] : queues_) {
    if (entry.queue != nullptr) pw::drain(*entry.queue);
    if (entry.pinned > 0) device->unpin(ring_);
  }
}

Queue* RingQueues::use(Device& device, uint64_t bytes) {
  RingQueue& entry = queues_[&device];
  if (in_use_ != nullptr && (in_use_ != entry.queue.get() || entry.pinned < bytes)) {
    pw_status status = PW_OK;
    if (!in_use_->idle(status)) return nullptr;
    if (status != PW_OK) {
      in_use_ = nullptr;  // it has ended, and its failure is reported only once
      throw Error(status, last_error_message());
    }
  }
  pin(device, entry, bytes);
  if (entry.queue == nullptr) entry.queue = device.make_queue();
  in_use_ = entry.queue.get();
  return in_use_;
}

void RingQueues::pin(Device& device, RingQueue& entry, uint64_t bytes) {
  if (entry.pinned >= bytes) return;
  if (entry.pinned > 0) device.unpin(ring_);
  entry.pinned = 0;
  device.pin(ring_, bytes);
  entry.pinned = bytes;
}

bool RingQueues::idle() {
  pw_status status = PW_OK;
  return in_use_ == nullptr || in_use_->idle(status);
}

void ChunkWalk::begin(bool fill, const Layout& layout, uint64_t chunk_bytes, std::byte* first, Queue* queue) {
  fill_ = fill;
  first_ = first;
  queue_ = queue;
  cursor_ = ChunkCursor(layout, chunk_bytes);
  has_chunk_ = cursor_.next(chunk_);
}

pw_status ChunkWalk::copy(std::byte* slot) {
  pw_status status = PW_OK;
  if (first_ != nullptr) status = queue_->copy(copy_of(chunk_, slot, first_, fill_), CopyBy::engine);
  if (status != PW_OK) first_ = nullptr;
  has_chunk_ = cursor_.next(chunk_);
  return status;
}

}  // namespace pw
