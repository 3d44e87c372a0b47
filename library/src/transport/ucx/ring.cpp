#include "transport/ucx/ring.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/status.h"

namespace pw::ucx {

Ring::Ring(const std::shared_ptr<UcxEngine>& engine) : engine_(engine) {
  void* address = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw Error(PW_NO_MEMORY, "mapping a ring for staging" + errno_text(errno));
  pages_ = {address, [](void* old) { munmap(old, kBytes); }};
  memory_ = std::make_unique<UcxMemory>(engine, address, kBytes);
  queues_ = std::make_unique<RingQueues>(address);
}

Ring::~Ring() {
  queues_.reset();
  memory_.reset();
  engine_->keep(std::move(pages_));
}

void RingEnd::begin(bool fill, const Layout& layout, std::byte* first, Queue* queue) {
  queue_ = queue;
  walk_.begin(fill, layout, kChunkBytes, first, queue);
}

bool RingEnd::leave_memory() {
  if (!own_.idle()) return false;
  walk_.leave_memory();
  return true;
}

pw_status RingEnd::copy_next() {
  bytes_of_[issued_ % kChunks] = walk_.bytes();
  pw_status status = walk_.copy(own_.chunk(issued_));
  ++issued_;
  if (walk_.has_memory()) status = queue_->write(reinterpret_cast<uint64_t*>(&own_.header().copied), issued_);
  if (status != PW_OK) walk_.leave_memory();
  return status;
}

pw_status RingEnd::pass_copied() {
  const uint64_t copied = walk_.has_memory() ? own_.header().copied.load(std::memory_order_acquire) : issued_;
  if (copied <= passed_) return PW_OK;
  if (walk_.fills() && walk_.has_memory()) {
    std::vector<Piece> pieces;  // in reverse order
    for (uint64_t number = copied; number-- > passed_;)
      pieces.push_back(
          {Op::put, own_.chunk(number), far_.address + Ring::offset(number), bytes_of_[number % kChunks]});
    const auto next = [pieces = std::move(pieces)](Piece& piece) mutable {
      if (pieces.empty()) return false;
      piece = pieces.back();
      pieces.pop_back();
      return true;
    };
    if (const pw_status status = engine_.move(rank_, own_.memory(), *far_.memory, true, next);
        status != PW_OK)
      return status;
  }
  passed_ = copied;
  return tell(&RingHeader::far, passed_);
}

pw_status RingEnd::tell(std::atomic<uint64_t> RingHeader::* counter, uint64_t value) {
  const auto offset = reinterpret_cast<uint64_t>(&(own_.header().*counter)) - own_.address();
  return engine_.put_word(rank_, *far_.memory, far_.address + offset, value);
}

pw_status RingEnd::step() {
  const auto ready = [&] {
    const uint64_t far = own_.header().far.load(std::memory_order_acquire);
    return walk_.fills() ? issued_ - far < kChunks : far > issued_;
  };
  while (walk_.has_chunk() && ready())
    if (const pw_status status = copy_next(); status != PW_OK) return status;
  return pass_copied();
}

}  // namespace pw::ucx
