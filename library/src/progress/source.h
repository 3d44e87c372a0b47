// A source of progress: something that advances only when a thread polls it, such as UCX, a NIC, or
// the staging channels of peers. Threads that wait poll all sources (Polling); while none waits, the progress
// thread does.
#pragma once

#include <cstdint>

namespace pw {

/// How long the progress thread may sleep on behalf of one source.
struct Armed {
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  int descriptor = -1;             ///< becomes readable when there is something to do; -1: none
  uint64_t longest_ns = kNoLimit;  ///< 0: there is something to do now
};

class Source {
 public:
  virtual ~Source() = default;

  /// Does what can be done now, unless another thread is doing it. Any thread may call it; it never waits.
  /// Returns whether something happened, so that there may be more to do.
  virtual bool poll() = 0;

  /// Called by the progress thread before it sleeps: returns what will wake it. `sleepers`: a thread of this
  /// rank sleeps until something arrives.
  virtual Armed arm(bool sleepers) = 0;

  /// How long the progress thread must stay awake after the source has done something, because more may come
  /// unannounced.
  [[nodiscard]] virtual uint64_t awake_ns() const { return 0; }

  /// Whether everything that gives the source work also wakes the progress thread, so that nobody needs to
  /// poll for it. If so, has_work() says whether there is work.
  [[nodiscard]] virtual bool work_is_announced() const { return false; }
  [[nodiscard]] virtual bool has_work() const { return false; }
};

}  // namespace pw
