// Words in device memory: signals that kernels poll without leaving their GPU, and the totals of
// notifications by kernels. A context has one pool for each device that needs one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "memory/region.h"

namespace pw {

/// Some words in a row, on cache lines of their own.
struct DeviceWords {
  std::shared_ptr<Region> region;  ///< that they lie in; null: none
  uint64_t offset = 0;             ///< of the first in the region, in bytes
  uint32_t count = 0;

  [[nodiscard]] uint64_t* address() const { return reinterpret_cast<uint64_t*>(region->address() + offset); }
};

class WordPool {
 public:
  /// The registry must outlive the pool.
  WordPool(Device& device, Registry& registry) : device_(device), registry_(registry) {}

  /// `count` words in a row, all zero. Throws Error.
  DeviceWords take(uint32_t count);
  void give(const DeviceWords& words);

 private:
  static constexpr uint64_t kLine = 128;  // bytes: what GPUs keep coherent among one another
  static constexpr uint64_t kChunkBytes = 1 << 16;

  struct Chunk {
    std::shared_ptr<Region> region;
    std::vector<bool> used;  ///< by line
    size_t next = 0;         ///< where the search begins: lines are used again as late as possible
  };

  static bool find(Chunk& chunk, size_t lines, size_t& first);

  Device& device_;
  Registry& registry_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
};

/// Reads and writes words of device memory from the host by a queue of its own, which no kernel holds up. Not
/// for use by several threads at once.
class WordAccess {
 public:
  /// Throws Error.
  WordAccess(Device& device, uint32_t count);
  ~WordAccess();
  WordAccess(const WordAccess&) = delete;

  /// Begins to read the words; done() tells when they are here.
  pw_status begin(const uint64_t* words);
  bool done(pw_status& status) { return queue_->idle(status); }
  /// The sum of what was read.
  [[nodiscard]] uint64_t sum() const;

  /// The sum of the words now. Throws Error.
  uint64_t read(const uint64_t* words);
  /// Returns once the word is stored. Throws Error.
  void write(uint64_t* word, uint64_t value);

 private:
  void drain();

  Device& device_;
  uint32_t count_;
  uint64_t bytes_;  ///< of the pages that the words come to
  uint64_t* here_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace pw
