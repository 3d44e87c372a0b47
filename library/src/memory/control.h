// The control segment: one small piece of shared memory per rank, which its peers on the same host map. It
// holds the generations of the rank's regions (so that one load shows whether a key is stale, without a
// message), the words of its signals, and the mailboxes of its staging service, with what a peer needs to
// wake that service. It is a memfd, so nothing remains when a process dies.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/descriptor.h"
#include "base/forked.h"
#include "base/waiting.h"
#include "base/wakeup_pipe.h"

namespace pw {

inline constexpr uint32_t kRegionSlots = 65536;
inline constexpr uint32_t kSignalWords = 65536;
inline constexpr uint32_t kSignalUnit = 8;    ///< in words: signals begin on their own cache lines
inline constexpr uint32_t kMailboxes = 1024;  ///< as many ranks of a host can stage

/// The mailbox in which one rank (index: its number among the ranks of this host) announces a staging channel
/// that it wants to have served. The mailbox of a plan (plan/negotiation/negotiation.h) is something else.
struct alignas(32) Mailbox {
  std::atomic<int32_t> descriptor;  ///< memfd number in the announcing process, plus 1; 0: none
  std::atomic<int32_t> rank;
  std::atomic<uint64_t> identity;  ///< of the memfd
  std::atomic<int32_t> refused;    ///< the answer if the channel cannot be served: a pw_status
};

/// Zero-filled memory is a valid, empty control segment.
struct Control {
  std::atomic<uint64_t> generation[kRegionSlots];  ///< odd while the slot's region is open
  alignas(64) std::atomic<uint64_t> signal[kSignalWords];
  alignas(64) std::atomic<uint32_t> work_count;  ///< peers increment it when they have staging work for
                                                 ///< this rank
  std::atomic<uint32_t> watchers;                ///< number of threads of this rank that poll `work_count`;
                                                 ///< if 0, peers must write to the wakeup pipe, too
  std::atomic<int32_t> wakeup_pipe;              ///< the pipe's descriptor number in this rank's process
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
  /// The wait policy of this rank's threads; it keeps the segment alive.
  [[nodiscard]] const std::shared_ptr<Waiting>& waiting() const { return waiting_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The pipe that wakes this rank's progress thread.
  [[nodiscard]] const WakeupPipe& wakeup_pipe() const { return wakeup_pipe_; }

  /// False in a forked child. The child has copies of this rank's objects, and what it does to them must not
  /// reach the shared memory.
  [[nodiscard]] bool mine() const { return !in_forked_child(); }

  /// Tells peers, and this rank's own waits, that the context is closed.
  void close_for_all();

  /// Opens a free slot: its generation is odd from now on. Throws Error if all are in use.
  uint32_t open_slot();
  void close_slot(uint32_t slot);

  /// Returns the first of `words` consecutive signal words, all zero. Throws Error if there are not enough.
  uint32_t take_words(uint32_t words);
  void give_words(uint32_t first, uint32_t words);

 private:
  ForkGuard fork_guard_;
  Descriptor descriptor_;
  WakeupPipe wakeup_pipe_;
  std::shared_ptr<Control> control_;
  std::shared_ptr<Waiting> waiting_;
  std::mutex mutex_;
  std::vector<uint32_t> free_slots_;
  uint32_t next_slot_ = 0;
  std::vector<bool> used_units_;
  uint32_t next_unit_ = 0;  ///< where the search begins, so that words are reused as late as possible
};

/// The facts about itself that a rank sends to the others when a context is made.
struct ProcessFacts {
  uint64_t host_id;  ///< equal if processes share a running kernel and a process-id namespace
  int32_t process;
  int32_t control;            ///< memfd number of the control segment
  uint64_t control_identity;  ///< of that memfd
  cpu_set_t cpus;             ///< CPUs that the process may run on
};

/// The facts of this process.
ProcessFacts facts_of_process(const ControlSegment& segment);

/// The facts that a rank keeps of another rank on its host.
struct Neighbour {
  int32_t rank = 0;
  int32_t process = 0;
  uint64_t control_identity = 0;
  int32_t control = -1;
};

/// Maps the control segment of another process of this host. Throws Error.
Control* map_control(const Neighbour& neighbour);
void unmap_control(Control* control) noexcept;

}  // namespace pw
