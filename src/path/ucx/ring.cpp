#include "path/ucx/ring.h"

#include <sched.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/status.h"

namespace pw::ucx {

Ring::Ring(const std::shared_ptr<Engine>& engine) {
  address_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address_ == MAP_FAILED)
    throw Error(PW_NO_MEMORY, "peerway: mapping a ring for staging" + errno_text(errno));
  try {
    memory_ = std::make_unique<Memory>(engine, address_, kBytes);
  } catch (...) {
    munmap(address_, kBytes);
    throw;
  }
}

Ring::~Ring() {
  for (auto& [device, queue] : queues_) {  // nothing may be in flight when the chunks go away
    pw_status status;
    while (!queue->idle(status)) sched_yield();
  }
  for (Device* device : pinned_for_) device->unpin(address_);
  memory_.reset();
  munmap(address_, kBytes);
}

Queue& Ring::queue_for(Device& device) {
  auto& entry = queues_[&device];
  if (entry == nullptr) {
    device.pin(address_, kBytes);
    pinned_for_.push_back(&device);
    entry = device.make_queue();
  }
  return *entry;
}

void Half::begin(bool give, const Layout& layout, std::byte* region, Queue* queue) {
  give_ = give;
  region_ = region;
  queue_ = queue;
  cursor_ = ChunkCursor(layout, kChunkBytes);
  has_chunk_ = cursor_.next(chunk_);
}

pw_status Half::copy_next() {
  pw_status status = PW_OK;
  bytes_of_[issued_ % kChunks] = chunk_.layout.shape.bytes();
  if (region_ != nullptr) {
    status = queue_->copy(chunk_copy(chunk_, own_.chunk(issued_), region_, give_, !give_), Method::engine);
    if (status == PW_OK)
      status = queue_->write(reinterpret_cast<uint64_t*>(&own_.header().copied), issued_ + 1);
    if (status != PW_OK) region_ = nullptr;
  }
  ++issued_;
  has_chunk_ = cursor_.next(chunk_);
  return status;
}

pw_status Half::pass_copied() {
  const uint64_t copied = region_ != nullptr ? own_.header().copied.load(std::memory_order_acquire) : issued_;
  if (copied <= passed_) return PW_OK;
  if (give_ && region_ != nullptr) {
    const auto next = [&](Piece& piece) {
      if (passed_ == copied) return false;
      piece = {Op::put, own_.chunk(passed_), far_.address + Ring::offset(passed_),
               bytes_of_[passed_ % kChunks]};
      ++passed_;
      return true;
    };
    if (const pw_status status = engine_.move(rank_, own_.memory(), *far_.memory, true, next);
        status != PW_OK)
      return status;
  }
  passed_ = copied;
  return tell(&RingHeader::far, passed_);
}

pw_status Half::tell(std::atomic<uint64_t> RingHeader::* counter, uint64_t value) {
  const auto offset = reinterpret_cast<uint64_t>(&(own_.header().*counter)) - own_.address();
  return engine_.put_word(rank_, *far_.memory, far_.address + offset, value);
}

pw_status Half::step() {
  const auto ready = [&] {
    const uint64_t far = own_.header().far.load(std::memory_order_acquire);
    return give_ ? issued_ - far < kChunks : far > issued_;
  };
  while (has_chunk_ && ready())
    if (const pw_status status = copy_next(); status != PW_OK) return status;
  return pass_copied();
}

}  // namespace pw::ucx
