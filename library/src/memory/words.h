// 64-bit words in the memory of a device. A signal whose words are there can be polled by kernels without
// leaving the GPU; kernels that notify signals keep their totals in such words, too. A context has one pool
// of words for each device that needs one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "memory/region.h"

namespace pw {

/// Consecutive words of a pool. No other words lie on their cache lines.
struct DeviceWords {
  std::shared_ptr<Region> region;  ///< the region that contains the words; null: there are no words
  uint64_t offset = 0;             ///< of the first word in the region, in bytes
  uint32_t count = 0;

  [[nodiscard]] uint64_t* address() const { return reinterpret_cast<uint64_t*>(region->address() + offset); }
};

/// Allocates words from chunks of device memory, by whole cache lines.
class WordPool {
 public:
  /// The registry must outlive the pool.
  WordPool(Device& device, Registry& registry) : device_(device), registry_(registry) {}

  /// Returns `count` consecutive words, all zero. Throws Error.
  DeviceWords take(uint32_t count);
  /// Returns the words to the pool.
  void give(const DeviceWords& words);

 private:
  static constexpr uint64_t kCacheLine = 128;  // bytes: the unit that GPUs keep coherent with one another
  static constexpr uint64_t kChunkBytes = 1 << 16;

  struct Chunk {
    std::shared_ptr<Region> region;
    std::vector<bool> used;  ///< for each cache line of the region
    size_t next = 0;         ///< where the search begins, so that lines are reused as late as possible
    size_t unused = 0;       ///< the first of the lines that were never taken, which are zero
  };

  /// Looks for `lines` consecutive free cache lines. Sets `first` to the number of the first, or returns
  /// false.
  static bool find(Chunk& chunk, size_t lines, size_t& first);

  Device& device_;
  Registry& registry_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
};

/// Lets the host read and write words of device memory. It copies them by a queue of its own, so it does not
/// wait for kernels. One thread may use it at a time.
class WordAccess {
 public:
  /// For reads of `count` words. Throws Error.
  WordAccess(Device& device, uint32_t count);
  ~WordAccess();
  WordAccess(const WordAccess&) = delete;

  /// Begins to read the words.
  pw_status begin(const uint64_t* words);
  /// Returns whether the read is over; `status` is then its outcome.
  bool done(pw_status& status) { return queue_->idle(status); }
  /// The sum of the words that were read last.
  [[nodiscard]] uint64_t sum() const;

  /// Reads the words and returns their sum. Throws Error.
  uint64_t read(const uint64_t* words);
  /// Stores the word and waits until that is done. Throws Error.
  void write(uint64_t* word, uint64_t value);

 private:
  void drain();  ///< waits for the queue; throws Error if a copy failed

  Device& device_;
  uint32_t count_;
  uint64_t bytes_;  ///< size of host_copy_: whole pages, which are pinned
  uint64_t* host_copy_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace pw
