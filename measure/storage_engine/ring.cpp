#include "ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "words.h"

namespace pw::storage {

// The ring is set up by hand: that is the little of liburing that is needed, and a wheel then needs nothing
// of the distribution.
Ring::Ring(unsigned depth) {
  if (depth == 0) return;
  io_uring_params how{};
  const long ring = syscall(SYS_io_uring_setup, depth, &how);
  if (ring < 0) return;  // an old kernel, or one where an administrator switched it off
  descriptor_ = static_cast<int>(ring);
  if (!(how.features & IORING_FEAT_SINGLE_MMAP) || !(how.features & IORING_FEAT_RW_CUR_POS)) {
    close(descriptor_);  // before 5.6 it lacks READ and WRITE
    descriptor_ = -1;
    return;
  }
  queues_size_ = std::max(how.sq_off.array + how.sq_entries * sizeof(unsigned),
                          how.cq_off.cqes + how.cq_entries * sizeof(io_uring_cqe));
  entries_size_ = how.sq_entries * sizeof(io_uring_sqe);
  const auto mapped = [this](size_t size, long long offset) {
    void* const address =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, offset);
    if (address == MAP_FAILED) throw Failed("mmap of an io_uring", errno);
    return address;
  };
  queues_ = mapped(queues_size_, IORING_OFF_SQ_RING);
  entries_ = static_cast<io_uring_sqe*>(mapped(entries_size_, IORING_OFF_SQES));
  char* const base = static_cast<char*>(queues_);
  const auto word = [base](unsigned at) { return reinterpret_cast<std::atomic<unsigned>*>(base + at); };
  sq_tail_ = word(how.sq_off.tail);
  cq_head_ = word(how.cq_off.head);
  cq_tail_ = word(how.cq_off.tail);
  sq_mask_ = *word(how.sq_off.ring_mask);
  cq_mask_ = *word(how.cq_off.ring_mask);
  sq_array_ = reinterpret_cast<unsigned*>(base + how.sq_off.array);
  ended_ = reinterpret_cast<io_uring_cqe*>(base + how.cq_off.cqes);
}

Ring::~Ring() {
  if (entries_) munmap(entries_, entries_size_);
  if (queues_) munmap(queues_, queues_size_);
  if (descriptor_ >= 0) close(descriptor_);
}

void Ring::start(bool write, int file, char* buffer, uint32_t size, uint64_t offset, uint64_t tag) {
  if (!uring()) {
    const auto place = static_cast<off_t>(offset);
    const ssize_t moved = write ? pwrite(file, buffer, size, place) : pread(file, buffer, size, place);
    at_once_ = {tag, moved < 0 ? -errno : static_cast<int32_t>(moved)};
    return;
  }
  const unsigned tail = sq_tail_->load(std::memory_order_relaxed), index = tail & sq_mask_;
  io_uring_sqe& entry = entries_[index];
  std::memset(&entry, 0, sizeof entry);
  entry.opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
  entry.fd = file;
  entry.addr = reinterpret_cast<uint64_t>(buffer);
  entry.len = size;
  entry.off = offset;
  entry.user_data = tag;
  sq_array_[index] = index;
  sq_tail_->store(tail + 1, std::memory_order_release);
  ++unsubmitted_;
}

Ring::Done Ring::wait() {
  if (!uring()) return at_once_;
  for (;;) {
    const unsigned head = cq_head_->load(std::memory_order_relaxed);
    const bool ready = head != cq_tail_->load(std::memory_order_acquire);
    if (!ready || unsubmitted_) {
      const long taken = syscall(SYS_io_uring_enter, descriptor_, unsubmitted_, ready ? 0 : 1,
                                 ready ? 0 : IORING_ENTER_GETEVENTS, nullptr, 0);
      if (taken < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY)
        throw Failed("io_uring_enter", errno);
      if (taken > 0) unsubmitted_ -= static_cast<unsigned>(taken);
      continue;
    }
    const io_uring_cqe& end = ended_[head & cq_mask_];
    const Done done{end.user_data, end.res};
    cq_head_->store(head + 1, std::memory_order_release);
    return done;
  }
}

}  // namespace pw::storage
