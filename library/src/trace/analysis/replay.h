// What a traced job would have taken had some of its parts been quicker: the steps of all lanes (threads and
// streams) run again, each as soon as what it needs is there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pw::trace {

/// The steps as they ran. Times in ns; all indices are of steps. A step ends when it, and all that it needs,
/// has begun and its own work is done; that work is what the trace says it took from then on.
struct Steps {
  std::span<const int64_t> begin, duration;  ///< by lane, and by time within it; they do not overlap
  std::span<const int32_t> part, before;     ///< what the step, and the time before it, count as
  std::span<const int64_t> lane;     ///< the first step of each lane, and behind them how many there are
  std::span<const int32_t> after;    ///< ascending: this step needs ...
  std::span<const int32_t> on;       ///< ... that this one has begun ...
  std::span<const int64_t> offset;   ///< ... so long ago
  std::span<const int32_t> meeting;  ///< the meeting that the step comes to; -1: none
  std::span<const int32_t> awaits;   ///< the meeting to which it needs that all have come; -1: none
  int32_t parts = 0;
};

/// A stretch of the critical path.
struct Stretch {
  int32_t step;
  bool within;  ///< the step, not the time before it
  int64_t begin, end;
};

class Replay {
 public:
  /// Throws Error where the spans do not fit together. The arrays that they refer to must live as long.
  explicit Replay(const Steps& steps);

  /// The end of the last step where each part takes `factor[part]` times as long; all 1: as it was.
  int64_t length(std::span<const double> factor) const;

  /// The critical path: the stretches that could not have been shorter without the job ending earlier, from
  /// its end back to its beginning.
  std::vector<Stretch> path() const;

 private:
  class Run;
  void check() const;
  void find_meetings();
  void find_work();
  [[nodiscard]] int64_t time_of(size_t need) const;
  [[nodiscard]] int64_t end_of(size_t step) const { return steps_.begin[step] + steps_.duration[step]; }

  Steps steps_;
  std::vector<uint32_t> first_need_;  // of each step, and behind them how many there are
  std::vector<bool> void_need_;       // of what the trace contradicts: the step ended before
  std::vector<bool> waits_;           // for the meeting that it awaits
  std::vector<int32_t> members_;      // of each meeting: how many come
  std::vector<int32_t> last_;         // of each meeting: who came last
  std::vector<int64_t> work_;         // of each step: ns of its own
};

}  // namespace pw::trace
