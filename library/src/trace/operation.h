// Records one event for each operation of a context or a plan if the program runs under `peerway trace`;
// otherwise an operation costs one branch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "peerway/trace/recorder.h"

namespace pw::trace {

#ifdef PEERWAY_NO_TRACE  // what its absence would save, for apps/trace/cost.py
constexpr bool recording() noexcept { return false; }
#else
inline bool recording() noexcept { return pw_trace_recording() != 0; }
#endif

/// Reads the settings when a team or a context is made. From then on operations are recorded if the settings
/// ask for that.
void begin();

/// Records the rank of this process, which the team knows and a launcher may not have told.
void is_rank(int rank);

/// Records whether the puts and gets of a path are complete when their call returns. The calling thread must
/// have called begin(), whether or not it records now.
void describe_path(std::string_view name, bool completes_at_start);

/// Returns the writer of this thread; null if it cannot record.
pw_trace_writer* open_writer();
inline pw_trace_writer* writer() { return pw_trace_mine != nullptr ? pw_trace_mine : open_writer(); }

/// Returns the name of the place that made this thread's current call; 0 if it is unknown.
unsigned site_of(pw_trace_writer* writer);

/// Returns the tag of events for a signal, which identifies it among its owner's signals.
inline int32_t tag_of_signal(uint64_t slot, uint64_t generation) {
  return static_cast<int32_t>((generation & 0x7fff) << 16 | (slot & 0xffff));
}
template <typename Key>
int32_t tag_of(const Key& key) {
  return tag_of_signal(key.slot, key.generation);
}

/// The current time in the unit of events.
uint64_t now();

/// Work that began earlier, perhaps in another thread, and has ended now. It need not nest in what this
/// thread does.
struct EarlierWork {
  pw_trace_kind kind;
  std::string_view name, where;
  uint64_t begin;  ///< from trace::now()
  int peer;
  uint64_t bytes;
  int32_t tag = -1;
};
void add(const EarlierWork& work);

/// Records an operation from its construction to its end. Make it only while recording, and only in this
/// library: others have their own recorder. It is inlined because when two ranks answer each other, every
/// instruction between a wait and the next put adds to the time.
class Operation {
 public:
  [[gnu::always_inline]] Operation(pw_trace_kind kind, int peer, uint64_t bytes, int32_t tag = -1)
      : writer_(writer()), sends_(kind == PW_TRACE_PUT || kind == PW_TRACE_NOTIFY) {
    if (writer_ == nullptr) return;
    pw_trace_fill(&event_, kind, kind, bytes, peer, tag);
    if (!sends_) place();
    pw_trace_begin(writer_, &event_);
    if (!sends_) pw_trace_prepare_next(writer_, pw_trace_word_of(&event_, 0));
  }
  /// An operation with a name and without a peer.
  Operation(std::string_view name, pw_trace_kind kind);
  [[gnu::always_inline]] ~Operation() { finish(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Ends the operation now rather than with the object; later calls do not count as its time.
  [[gnu::always_inline]] void end() {
    if (writer_ == nullptr || ended_) return;
    pw_trace_end(writer_, &event_);
    ended_ = true;
  }
  /// Ends the operation and writes its event, once.
  [[gnu::always_inline]] void finish() {
    // A child of fork() has a writer of its own, like another thread.
    if (writer_ == nullptr || writer_ != pw_trace_mine) return;
    end();
    if (sends_) place();
    pw_trace_write(writer_, &event_);
    if (sends_) pw_trace_prepare_next(writer_, pw_trace_word_of(&event_, 0));
    writer_ = nullptr;
  }
  /// Sets the begin to an earlier time, from trace::now().
  void since(uint64_t ticks);
  /// Sets the bytes that it moves, and the number of its plan.
  void of(uint64_t bytes, int32_t tag);
  /// Sets the path that it took.
  [[gnu::always_inline]] void by(std::string_view path) {
    if (writer_ != nullptr) pw_trace_where(&event_, pw_trace_name(writer_, path.data(), path.size()));
  }

 private:
  [[gnu::always_inline]] void place() { pw_trace_site(&event_, site_of(writer_)); }

  pw_trace_writer* writer_;
  /// True for puts and notifications. Another rank waits for what they send, so bookkeeping follows their
  /// end. For other operations it comes before the begin, because another rank may wait for what follows
  /// their end.
  bool sends_;
  pw_trace_event event_;
  bool ended_ = false;
};

/// A region of the program; also for a library or module that links this library.
class ProgramRegion {
 public:
  explicit ProgramRegion(std::string_view name);
  ~ProgramRegion();
  ProgramRegion(const ProgramRegion&) = delete;
  ProgramRegion& operator=(const ProgramRegion&) = delete;

  void end();

 private:
  bool counts_;  ///< it is one of the regions that were asked for
  std::optional<Operation> operation_;
};

}  // namespace pw::trace
