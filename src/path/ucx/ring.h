// A ring of chunks in host memory at each end of a staged transfer, which UCX reaches from the other end and
// the queues of devices from this one; and one end's half of the work.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "path/staged/channel.h"
#include "path/ucx/engine.h"

namespace pw::ucx {

inline constexpr uint64_t kChunkBytes = uint64_t{256} << 10;
inline constexpr uint64_t kChunks = 8;

/// Before the chunks. Counters only grow; a chunk's number is its place in the sequence of all that ever
/// passed.
struct RingHeader {
  alignas(64) std::atomic<uint64_t> far;        ///< chunks that the other end has passed; written by UCX
  alignas(64) std::atomic<uint64_t> completed;  ///< initiator: requests served; written by UCX
  alignas(64)
      std::atomic<uint64_t> failed;  ///< initiator: how many of them failed, times 256, plus the last status
  alignas(
      64) std::atomic<uint64_t> copied;  ///< chunks that this end's queue has copied; written by the queue
};

class Ring {
 public:
  explicit Ring(const std::shared_ptr<Engine>& engine);  ///< Throws Error
  ~Ring();
  Ring(const Ring&) = delete;

  [[nodiscard]] RingHeader& header() const { return *static_cast<RingHeader*>(address_); }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(address_); }
  [[nodiscard]] std::byte* chunk(uint64_t number) const {
    return static_cast<std::byte*>(address_) + offset(number);
  }
  [[nodiscard]] static uint64_t offset(uint64_t number) { return kFirst + number % kChunks * kChunkBytes; }
  [[nodiscard]] Memory& memory() { return *memory_; }

  /// A queue that copies between the chunks and memory of `device`. Throws Error.
  Queue& queue_for(Device& device);

 private:
  static constexpr uint64_t kFirst = 4096;
  static constexpr uint64_t kBytes = kFirst + kChunks * kChunkBytes;
  void* address_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::map<const Device*, std::unique_ptr<Queue>> queues_;
  std::vector<Device*> pinned_for_;
};

/// The ring at the other end.
struct FarRing {
  std::unique_ptr<RemoteMemory> memory;
  uint64_t address = 0;
};

/// One end's half of the transfers over a pair of rings: gives chunks (from its region, over UCX, into the
/// other ring) or takes those that arrive. Both ends walk the same layout, so that chunks need no header.
class Half {
 public:
  Half(Engine& engine, Ring& own, int rank, FarRing far)
      : engine_(engine), own_(own), rank_(rank), far_(std::move(far)) {}

  /// The first byte of the transfer is at `region`; null passes the chunks without their bytes, so that the
  /// other end comes to its end.
  void begin(bool give, const Layout& layout, std::byte* region, Queue* queue);

  /// Does what can be done now. After a failure chunks are still passed, without their bytes.
  pw_status step();
  [[nodiscard]] bool done() const { return !has_chunk_ && passed_ == issued_; }

  /// Writes one of the other ring's counters, after all that was passed.
  pw_status tell(std::atomic<uint64_t> RingHeader::* counter, uint64_t value);

 private:
  pw_status copy_next();
  pw_status pass_copied();

  Engine& engine_;
  Ring& own_;
  const int rank_;
  FarRing far_;
  bool give_ = false;
  std::byte* region_ = nullptr;
  Queue* queue_ = nullptr;
  ChunkCursor cursor_;
  Chunk chunk_;
  bool has_chunk_ = false;
  uint64_t issued_ = 0;  ///< chunks whose copy was started
  uint64_t passed_ = 0;  ///< chunks that the other end was told of
  uint64_t bytes_of_[kChunks] = {};
};

}  // namespace pw::ucx
