// The control segment: one small piece of shared memory a rank, which its peers on the same host map. It
// holds the generations of the rank's regions (so that a stale key is seen by one load, with no message), the
// words of its signals, and the mailboxes and doorbell of its staging service. It is a memfd: nothing is left
// behind when a process dies.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/descriptor.h"
#include "base/waiting.h"
#include "base/wakeup_pipe.h"

namespace pw {

inline constexpr uint32_t kRegionSlots = 65536;
inline constexpr uint32_t kSignalWords = 65536;
inline constexpr uint32_t kSignalUnit = 8;  ///< words: signals begin on cache lines of their own
inline constexpr uint32_t kMailboxes = 1024;

/// The mailbox in which one rank (index: rank modulo kMailboxes) announces the staging channel it wants
/// served.
struct alignas(32) Mailbox {
  std::atomic<int32_t> descriptor;  ///< memfd number in the announcing process, plus 1; 0: none
  std::atomic<int32_t> rank;
  std::atomic<uint64_t> identity;  ///< of the memfd
  std::atomic<int32_t> refused;    ///< the answer when it cannot be served: a pw_status
};

/// Zero-filled memory is a valid, empty control segment.
struct Control {
  std::atomic<uint64_t> generation[kRegionSlots];  ///< odd while the slot's region is open
  alignas(64) std::atomic<uint64_t> signal[kSignalWords];
  alignas(64) std::atomic<uint32_t> doorbell;  ///< counted up when there is staging work for this rank
  std::atomic<uint32_t> watchers;    ///< threads of this rank that look at it; 0: write to the wakeup pipe
  std::atomic<int32_t> wakeup_pipe;  ///< descriptor number in this rank's process
  std::atomic<uint64_t> wakeup_pipe_identity;
  std::atomic<uint32_t> closed;  ///< 1 once the context is closed: it serves nobody any more
  Sleepers sleepers;             ///< threads of this rank that sleep until a peer does something
  alignas(64) Mailbox mailbox[kMailboxes];
};

/// This rank's own segment, with the free lists of its slots and signal words.
class ControlSegment {
 public:
  ControlSegment();
  ControlSegment(const ControlSegment&) = delete;

  [[nodiscard]] Control& control() const { return *control_; }
  /// The waiting policy of this rank's threads; it holds on to the segment.
  [[nodiscard]] const std::shared_ptr<Waiting>& waiting() const { return waiting_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// Wakes this rank's progress thread.
  [[nodiscard]] const WakeupPipe& wakeup_pipe() const { return wakeup_pipe_; }

  /// False in a forked child, which has copies of this rank's objects: what it does to them must not reach
  /// the shared memory.
  [[nodiscard]] bool mine() const;

  /// Tells peers, and this rank's own waits, that the context is being closed.
  void close_for_all();

  /// A free slot, opened: its generation is odd from now on. Throws Error when all are in use.
  uint32_t open_slot();
  void close_slot(uint32_t slot);

  /// `words` signal words in a row, all zero. Throws Error when there are not enough.
  uint32_t take_words(uint32_t words);
  void give_words(uint32_t first, uint32_t words);

 private:
  Descriptor descriptor_;
  WakeupPipe wakeup_pipe_;
  int process_;
  std::shared_ptr<Control> control_;
  std::shared_ptr<Waiting> waiting_;
  std::mutex mutex_;
  std::vector<uint32_t> free_slots_;
  uint32_t next_slot_ = 0;
  std::vector<bool> used_units_;
  uint32_t next_unit_ = 0;  ///< where the search begins: words are used again as late as possible
};

/// The facts that a rank sends the others about itself when a context is made.
struct ProcessFacts {
  uint64_t host_id;  ///< equal where processes share a running kernel and a process-id namespace
  int32_t process;
  int32_t control;            ///< memfd number of the control segment
  uint64_t control_identity;  ///< of that memfd
  cpu_set_t cpus;             ///< that it may run on
  uint64_t shown_devices;     ///< differs where processes were shown different devices
};

/// The facts of this process.
ProcessFacts facts_of_process(const ControlSegment& segment);

/// The part of them that a rank keeps of another one of its host.
struct Neighbour {
  int32_t rank = 0;
  int32_t process = 0;
  uint64_t control_identity = 0;
  int32_t control = -1;
};

/// Maps the control segment of another process of this host. Throws Error.
Control* map_control(const Neighbour& of);
void unmap_control(Control* control) noexcept;

}  // namespace pw
