// Reads and writes of one file, several under way at once: through io_uring where the kernel gives one, else
// pread and pwrite.
#pragma once

#include <linux/io_uring.h>

#include <atomic>
#include <cstdint>

namespace pw::storage {

class Ring {
 public:
  explicit Ring(unsigned depth);  // of 0: never io_uring
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool uring() const { return descriptor_ >= 0; }

  // Starts one operation; `tag` comes back with its end. Without io_uring it is over at once.
  void start(bool write, int file, char* buffer, uint32_t size, uint64_t offset, uint64_t tag);

  struct Done {
    uint64_t tag;
    int32_t result;  // bytes, or -errno
  };
  Done wait();  // for the next that ends; one must be under way

 private:
  int descriptor_ = -1;
  unsigned unsubmitted_ = 0;
  void* queues_ = nullptr;
  size_t queues_size_ = 0, entries_size_ = 0;
  io_uring_sqe* entries_ = nullptr;
  std::atomic<unsigned>*sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  unsigned *sq_array_ = nullptr, sq_mask_ = 0, cq_mask_ = 0;
  io_uring_cqe* ended_ = nullptr;
  Done at_once_{};
};

}  // namespace pw::storage
