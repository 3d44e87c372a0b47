// Words in device memory: signals that kernels poll without leaving their GPU, and the totals of kernels'
// notifications. A context has one pool for each device that needs words.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "memory/region.h"

namespace pw {

/// Consecutive words, on cache lines of their own.
struct DeviceWords {
  std::shared_ptr<Region> region;  ///< the region that they lie in; null: there are none
  uint64_t offset = 0;             ///< of the first word in the region, in bytes
  uint32_t count = 0;

  [[nodiscard]] uint64_t* address() const { return reinterpret_cast<uint64_t*>(region->address() + offset); }
};

class WordPool {
 public:
  /// The registry must outlive the pool.
  WordPool(Device& device, Registry& registry) : device_(device), registry_(registry) {}

  /// Returns `count` consecutive words, all zero. Throws Error.
  DeviceWords take(uint32_t count);
  void give(const DeviceWords& words);

 private:
  static constexpr uint64_t kLine = 128;  // bytes: the unit that GPUs keep coherent with one another
  static constexpr uint64_t kChunkBytes = 1 << 16;

  struct Chunk {
    std::shared_ptr<Region> region;
    std::vector<bool> used;  ///< by line
    size_t next = 0;         ///< where the search begins, so that lines are reused as late as possible
  };

  static bool find(Chunk& chunk, size_t lines, size_t& first);

  Device& device_;
  Registry& registry_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
};

/// Reads and writes words of device memory from the host by a queue of its own, which no kernel delays. Not
/// for use by several threads at once.
class WordAccess {
 public:
  /// Throws Error.
  WordAccess(Device& device, uint32_t count);
  ~WordAccess();
  WordAccess(const WordAccess&) = delete;

  /// Begins to read the words; done() returns whether they have arrived.
  pw_status begin(const uint64_t* words);
  bool done(pw_status& status) { return queue_->idle(status); }
  /// The sum of the words that were read.
  [[nodiscard]] uint64_t sum() const;

  /// Reads the words and returns their sum. Throws Error.
  uint64_t read(const uint64_t* words);
  /// Stores the word and waits until that is done. Throws Error.
  void write(uint64_t* word, uint64_t value);

 private:
  void drain();

  Device& device_;
  uint32_t count_;
  uint64_t bytes_;  ///< of the pages that the words are copied to
  uint64_t* here_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace pw
