// A source of progress: something that advances only when a thread turns (calls) it, such as UCX, a NIC, or
// the staging channels of peers. Threads that wait turn all sources (Turning); while none waits, the progress
// thread does.
#pragma once

#include <cstdint>

namespace pw {

/// How long the progress thread may sleep as far as one source is concerned.
struct Armed {
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  int descriptor = -1;             ///< readable once there is something to do; -1: none
  uint64_t longest_ns = kNoLimit;  ///< 0: there is something to do now
};

class Source {
 public:
  virtual ~Source() = default;

  /// Does what can be done now, unless another thread is at it. Any thread may call it; nothing in it waits.
  /// Returns whether something happened, so that there may be more.
  virtual bool turn() = 0;

  /// Asked by the progress thread before it sleeps: what wakes it from here on. `sleepers`: some thread of
  /// this rank sleeps until something has come.
  virtual Armed arm(bool sleepers) = 0;

  /// How long the progress thread stays awake after the source has done something: as long as more may come
  /// unannounced.
  [[nodiscard]] virtual uint64_t awake_ns() const { return 0; }

  /// Whether all that gives it work rings this rank's wakeup pipe, so that nobody need poll; and then,
  /// whether there is some.
  [[nodiscard]] virtual bool rings() const { return false; }
  [[nodiscard]] virtual bool has_work() const { return false; }
};

}  // namespace pw
