// The ring buffers of ucx/staged, and one end's half of the transfers through them. There is one ring at each
// end of a connection, in host memory that is divided into chunks. The queues of this end's device access it
// directly, and the other end accesses it over UCX.
#pragma once

#include <atomic>
#include <memory>

#include "transport/staged/chunks.h"
#include "transport/ucx/engine.h"

namespace pw::ucx {

inline constexpr uint64_t kChunkBytes = uint64_t{256} << 10;
inline constexpr uint64_t kChunks = 8;

/// Lies before the chunks. The counters only grow. Chunks are numbered in the order in which they pass, over
/// all transfers.
struct RingHeader {
  alignas(64) std::atomic<uint64_t> far;        ///< chunks that the other end has passed; written by UCX
  alignas(64) std::atomic<uint64_t> completed;  ///< initiator: requests served; written by UCX
  alignas(64) std::atomic<uint64_t> failed;     ///< initiator: failure_word; written by UCX
  alignas(64) std::atomic<uint64_t> copied;     ///< chunks copied at this end; written by its queue
};

class Ring {
 public:
  explicit Ring(const std::shared_ptr<UcxEngine>& engine);  ///< Throws Error
  ~Ring();
  Ring(const Ring&) = delete;

  [[nodiscard]] RingHeader& header() const { return *static_cast<RingHeader*>(pages_.get()); }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(pages_.get()); }
  [[nodiscard]] std::byte* chunk(uint64_t number) const {
    return static_cast<std::byte*>(pages_.get()) + offset(number);
  }
  [[nodiscard]] static uint64_t offset(uint64_t number) { return kFirst + number % kChunks * kChunkBytes; }
  [[nodiscard]] UcxMemory& memory() { return *memory_; }

  /// Selects the queue that copies between the chunks and memory of `device`. Returns null while another
  /// queue works. Throws Error.
  Queue* use(Device& device) { return queues_->use(device, kBytes); }
  /// Whether no queue is working.
  bool idle() { return queues_->idle(); }

 private:
  static constexpr uint64_t kFirst = 4096;
  static constexpr uint64_t kBytes = kFirst + kChunks * kChunkBytes;
  std::shared_ptr<UcxEngine> engine_;
  std::shared_ptr<void> pages_;
  std::unique_ptr<UcxMemory> memory_;
  std::unique_ptr<RingQueues> queues_;
};

/// The ring at the other end.
struct FarRing {
  std::unique_ptr<UcxRemoteMemory> memory;
  uint64_t address = 0;
};

/// One end's half of the transfers over a pair of rings: fills chunks and puts them into the other ring over
/// UCX, or drains those that arrive. ChannelEnd does the same over shared memory. There a queue itself tells
/// the other end about a chunk; here that takes UCX. So each chunk passes in two steps: a queue copies it,
/// and when the copy is done UCX puts it and tells the other end.
class RingEnd {
 public:
  RingEnd(UcxEngine& engine, Ring& own, int rank, FarRing far)
      : engine_(engine), own_(own), rank_(rank), far_(std::move(far)) {}

  /// Like ChunkWalk::begin.
  void begin(bool fill, const Layout& layout, std::byte* first, Queue* queue);

  /// Does what can be done now. After a failure it still passes chunks, without their bytes.
  pw_status step();
  [[nodiscard]] bool done() const { return !walk_.has_chunk() && passed_ == issued_; }

  /// A number that grows with each chunk that is copied or passed.
  [[nodiscard]] uint64_t chunks() const { return issued_ + passed_; }

  /// Passes the remaining chunks without their bytes, once nothing uses the transfer's memory. Returns false
  /// before that: ask again, and do not call step() meanwhile.
  bool leave_memory();

  /// Writes one of the other ring's counters, after everything that was passed.
  pw_status tell(std::atomic<uint64_t> RingHeader::* counter, uint64_t value);

 private:
  pw_status copy_next();
  pw_status pass_copied();

  UcxEngine& engine_;
  Ring& own_;
  const int rank_;
  FarRing far_;
  Queue* queue_ = nullptr;
  ChunkWalk walk_;
  uint64_t issued_ = 0;  ///< chunks whose copy was started
  uint64_t passed_ = 0;  ///< chunks that the other end was told about
  uint64_t bytes_of_[kChunks] = {};
};

}  // namespace pw::ucx
