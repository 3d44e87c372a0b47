// Computes how long a traced job would have taken if some of its parts had been faster: the steps of all
// lanes run again, each as soon as what it needs is available. A lane is here a thread or a stream of the
// trace; lanes of plans are something else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pw::trace {

/// The recorded steps. Times are in ns; all indices are indices of steps. A step ends when it, and every step
/// that it needs, has begun and its own work is done. Its own work is the time that it took in the trace from
/// then on.
struct Steps {
  std::span<const int64_t> begin, duration;  ///< ordered by lane, and by time within a lane; they do not
                                             ///< overlap
  std::span<const int32_t> part, before;     ///< the part to which the step, and the time before it, belong
  std::span<const int64_t> lane;     ///< the first step of each lane, and at the end the number of steps
  std::span<const int32_t> after;    ///< ascending: this step needs ...
  std::span<const int32_t> on;       ///< ... that this step has begun ...
  std::span<const int64_t> offset;   ///< ... at least this long ago
  std::span<const int32_t> meeting;  ///< the meeting at which the step arrives; -1: none
  std::span<const int32_t> awaits;   ///< the meeting at which all must have arrived before the step can end;
                                     ///< -1: none
  int32_t parts = 0;
};

/// A stretch of the critical path.
struct Stretch {
  int32_t step;
  bool within;  ///< true: within the step; false: the time before it
  int64_t begin, end;
};

class Replay {
 public:
  /// Throws Error if the spans do not fit together. The arrays that they refer to must outlive this object.
  explicit Replay(const Steps& steps);

  /// Returns the end of the last step if each part takes `factor[part]` times as long; with all factors 1,
  /// the recorded end.
  int64_t length(std::span<const double> factor) const;

  /// Returns the critical path, from the job's end back to its beginning: the stretches that could not have
  /// been shorter without the job ending earlier.
  std::vector<Stretch> path() const;

 private:
  class Run;
  void check() const;
  void find_meetings();
  void find_work();
  [[nodiscard]] int64_t time_of(size_t need) const;
  [[nodiscard]] int64_t end_of(size_t step) const { return steps_.begin[step] + steps_.duration[step]; }

  Steps steps_;
  std::vector<uint32_t> first_need_;  // of each step, and at the end the number of needs
  std::vector<bool> void_need_;       // needs that the trace contradicts: the step ended before they were met
  std::vector<bool> waits_;           // whether the step waits for the meeting that it awaits
  std::vector<int32_t> members_;      // for each meeting: the number of steps that arrive
  std::vector<int32_t> last_;         // for each meeting: the step that arrived last
  std::vector<int64_t> work_;         // for each step: ns of its own work
};

}  // namespace pw::trace
