// What the library records where `peerway trace` runs the program: one event for each operation of a context
// or a plan. Elsewhere an operation costs one branch.
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

/// Reads the settings, at the making of a team or a context; from then on operations are recorded if they say
/// so.
void begin();

/// A team knows the rank of this process, which a launcher may not have said.
void is_rank(int rank);

/// What a trace is to know of a path: whether its puts and gets are complete when their call returns. To be
/// called by a thread that has begun, whether or not it records now.
void describe_path(std::string_view name, bool completes_at_start);

/// The writer of this thread; null where it cannot record.
pw_trace_writer* open_writer();
inline pw_trace_writer* writer() { return pw_trace_mine != nullptr ? pw_trace_mine : open_writer(); }

/// The name of the place that called what this thread is in; 0 where it is not known.
unsigned site_of(pw_trace_writer* writer);

/// A signal among those of its owner, as the tag of events.
inline int32_t tag_of_signal(uint64_t slot, uint64_t generation) {
  return static_cast<int32_t>((generation & 0x7fff) << 16 | (slot & 0xffff));
}
template <typename Key>
int32_t tag_of(const Key& key) {
  return tag_of_signal(key.slot, key.generation);
}

/// A time, as events have it.
uint64_t now();

/// Work that began earlier, maybe in another thread, and has ended now. It is not nested in what this thread
/// does.
struct EarlierWork {
  pw_trace_kind kind;
  std::string_view name, where;
  uint64_t begin;  ///< of trace::now()
  int peer;
  uint64_t bytes;
  int32_t tag = -1;
};
void add(const EarlierWork& work);

/// From its beginning to its end; to be made only while recording, and only in this library: others have a
/// recorder of their own. It is in line because it counts where two ranks answer each other: there the number
/// of instructions from a wait to the next put is what it costs.
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
  /// An operation that has a name and no peer.
  Operation(std::string_view name, pw_trace_kind kind);
  [[gnu::always_inline]] ~Operation() { finish(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Ends now and not with the object: what is said of it from here on takes no part.
  [[gnu::always_inline]] void end() {
    if (writer_ == nullptr || ended_) return;
    pw_trace_end(writer_, &event_);
    ended_ = true;
  }
  /// Ends and writes it, once.
  [[gnu::always_inline]] void finish() {
    // A child of fork() has a writer of its own, as another thread has.
    if (writer_ == nullptr || writer_ != pw_trace_mine) return;
    end();
    if (sends_) place();
    pw_trace_write(writer_, &event_);
    if (sends_) pw_trace_prepare_next(writer_, pw_trace_word_of(&event_, 0));
    writer_ = nullptr;
  }
  /// It began earlier, at a time of trace::now().
  void since(uint64_t ticks);
  /// Says what it moves, and which plan it is of.
  void of(uint64_t bytes, int32_t tag);
  /// Says which path it took.
  [[gnu::always_inline]] void by(std::string_view path) {
    if (writer_ != nullptr) pw_trace_where(&event_, pw_trace_name(writer_, path.data(), path.size()));
  }

 private:
  [[gnu::always_inline]] void place() { pw_trace_site(&event_, site_of(writer_)); }

  pw_trace_writer* writer_;
  /// Another rank waits for what these send, and for what follows the end of the others: all that can be done
  /// at the other end of the operation is done there.
  bool sends_;
  pw_trace_event event_;
  bool ended_ = false;
};

/// A region of the program, also for a library or module that links this one.
class ProgramRegion {
 public:
  explicit ProgramRegion(std::string_view name);
  ~ProgramRegion();
  ProgramRegion(const ProgramRegion&) = delete;
  ProgramRegion& operator=(const ProgramRegion&) = delete;

  void end();

 private:
  bool counts_;  ///< it is one of those that are recorded alone
  std::optional<Operation> operation_;
};

}  // namespace pw::trace
