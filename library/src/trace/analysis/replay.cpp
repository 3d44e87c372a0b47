#include "trace/analysis/replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"

namespace pw::trace {

namespace {

int64_t scaled(int64_t ns, double factor) {
  return factor == 1 ? ns : std::llround(static_cast<double>(ns) * factor);
}

}  // namespace

Replay::Replay(const Steps& steps) : steps_(steps) {
  check();
  find_meetings();
  find_work();
}

void Replay::check() const {
  const auto count = steps_.begin.size();
  const auto fits = [&](auto span) { return span.size() == count; };
  const auto inside = [&](int32_t step) { return step >= 0 && static_cast<size_t>(step) < count; };
  const auto known = [&](int32_t part) { return part >= 0 && part < steps_.parts; };
  const auto needs = steps_.after.size();
  bool good = fits(steps_.duration) && fits(steps_.part) && fits(steps_.before) && fits(steps_.meeting) &&
              fits(steps_.awaits) && steps_.on.size() == needs && steps_.offset.size() == needs &&
              !steps_.lane.empty() && steps_.lane.front() == 0 &&
              steps_.lane.back() == static_cast<int64_t>(count);
  good = good && std::ranges::is_sorted(steps_.lane) && std::ranges::is_sorted(steps_.after) &&
         std::ranges::all_of(steps_.after, inside) && std::ranges::all_of(steps_.on, inside) &&
         std::ranges::all_of(steps_.part, known) && std::ranges::all_of(steps_.before, known) &&
         std::ranges::all_of(steps_.meeting,
                             [&](int32_t meeting) { return meeting < static_cast<int64_t>(count); });
  const auto most = steps_.meeting.empty() ? -1 : std::ranges::max(steps_.meeting);
  good = good && std::ranges::all_of(steps_.awaits, [&](int32_t awaited) { return awaited <= most; });
  if (!good)
    throw Error(PW_INVALID_ARGUMENT,
                "trace: the columns of steps, lanes and needs that are to be replayed do not fit "
                "together; this is an error of Peerway");
}

int64_t Replay::time_of(size_t need) const {
  const auto on = static_cast<size_t>(steps_.on[need]);
  return steps_.begin[on] + steps_.offset[need];
}

void Replay::find_meetings() {
  int32_t most = -1;
  for (const auto meeting : steps_.meeting) most = std::max(most, meeting);
  members_.assign(static_cast<size_t>(most) + 1, 0);
  last_.assign(members_.size(), -1);
  for (size_t i = 0; i < steps_.meeting.size(); ++i) {
    if (steps_.meeting[i] < 0) continue;
    const auto meeting = static_cast<size_t>(steps_.meeting[i]);
    ++members_[meeting];
    auto& last = last_[meeting];
    if (last < 0 || steps_.begin[i] > steps_.begin[static_cast<size_t>(last)]) last = static_cast<int32_t>(i);
  }
}

void Replay::find_work() {
  const auto count = steps_.begin.size();
  first_need_.assign(count + 1, 0);
  for (const auto step : steps_.after) ++first_need_[static_cast<size_t>(step) + 1];
  std::partial_sum(first_need_.begin(), first_need_.end(), first_need_.begin());
  void_need_.assign(steps_.after.size(), false);
  waits_.assign(count, false);
  work_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    auto ready = steps_.begin[i];
    for (auto need = first_need_[i]; need < first_need_[i + 1]; ++need) {
      void_need_[need] = time_of(need) >= end_of(i);
      if (!void_need_[need]) ready = std::max(ready, time_of(need));
    }
    if (steps_.awaits[i] >= 0 && last_[static_cast<size_t>(steps_.awaits[i])] >= 0) {
      const auto last = static_cast<size_t>(last_[static_cast<size_t>(steps_.awaits[i])]);
      waits_[i] = steps_.begin[last] < end_of(i);
      if (waits_[i]) ready = std::max(ready, steps_.begin[last]);
    }
    work_[i] = end_of(i) - ready;
  }
}

/// One replay: each lane runs until it needs a step of another lane that has not run yet, and continues when
/// that has.
class Replay::Run {
 public:
  Run(const Replay& replay, std::span<const double> factor, std::vector<int32_t>* bound)
      : of_(replay), steps_(replay.steps_), factor_(factor), bound_(bound), lanes_(steps_.lane.size() - 1) {
    began_.assign(steps_.begin.size(), -1);
    ended_.assign(steps_.begin.size(), -1);
    sleepers_of_step_.assign(steps_.begin.size(), -1);
    sleepers_of_meeting_.assign(of_.members_.size(), -1);
    next_sleeper_.assign(lanes_, -1);
    came_.assign(of_.members_.size(), 0);
    ready_of_meeting_.assign(of_.members_.size(), 0);
  }

  int64_t operator()() {
    for (size_t lane = lanes_; lane-- > 0;) {
      position_.push_back(0);
      runnable_.push_back(static_cast<int32_t>(lane));
    }
    for (size_t lane = 0; lane < lanes_; ++lane) position_[lane] = static_cast<size_t>(steps_.lane[lane]);
    while (!runnable_.empty()) {
      const auto lane = static_cast<size_t>(runnable_.back());
      runnable_.pop_back();
      auto& step = position_[lane];
      while (step < static_cast<size_t>(steps_.lane[lane + 1]) && advance(lane, step)) ++step;
    }
    return ended_.empty() ? 0 : std::max<int64_t>(0, *std::ranges::max_element(ended_));
  }

 private:
  /// Runs one step. Returns false if the step must wait; the lane is then queued where it will be woken.
  bool advance(size_t lane, size_t step) {
    if (began_[step] < 0) begin(lane, step);
    auto ready = began_[step];
    int32_t bound = -1;
    for (auto need = of_.first_need_[step]; need < of_.first_need_[step + 1]; ++need) {
      if (of_.void_need_[need]) continue;
      const auto on = static_cast<size_t>(steps_.on[need]);
      if (began_[on] < 0) return sleep(lane, sleepers_of_step_[on]);
      const auto then = began_[on] + steps_.offset[need];
      if (then > ready) ready = then, bound = static_cast<int32_t>(on);
    }
    if (of_.waits_[step]) {
      const auto meeting = static_cast<size_t>(steps_.awaits[step]);
      if (came_[meeting] < of_.members_[meeting]) return sleep(lane, sleepers_of_meeting_[meeting]);
      if (ready_of_meeting_[meeting] > ready) ready = ready_of_meeting_[meeting], bound = of_.last_[meeting];
    }
    ended_[step] = ready + scaled(of_.work_[step], factor(steps_.part[step]));
    if (bound_ != nullptr) (*bound_)[step] = bound;
    return true;
  }

  void begin(size_t lane, size_t step) {
    const bool first = step == static_cast<size_t>(steps_.lane[lane]);
    const auto before = first ? 0 : of_.end_of(step - 1);
    began_[step] =
        (first ? 0 : ended_[step - 1]) + scaled(steps_.begin[step] - before, factor(steps_.before[step]));
    wake(sleepers_of_step_[step]);
    if (steps_.meeting[step] < 0) return;
    const auto meeting = static_cast<size_t>(steps_.meeting[step]);
    ready_of_meeting_[meeting] = std::max(ready_of_meeting_[meeting], began_[step]);
    if (++came_[meeting] == of_.members_[meeting]) wake(sleepers_of_meeting_[meeting]);
  }

  bool sleep(size_t lane, int32_t& sleepers) {
    next_sleeper_[lane] = sleepers;
    sleepers = static_cast<int32_t>(lane);
    return false;
  }

  void wake(int32_t& sleepers) {
    for (; sleepers >= 0; sleepers = next_sleeper_[static_cast<size_t>(sleepers)])
      runnable_.push_back(sleepers);
  }

  [[nodiscard]] double factor(int32_t part) const { return factor_[static_cast<size_t>(part)]; }

  const Replay& of_;
  const Steps& steps_;
  std::span<const double> factor_;
  std::vector<int32_t>* bound_;  // for each step: the step that it waited for longest
  size_t lanes_;
  std::vector<size_t> position_;
  std::vector<int64_t> began_, ended_, ready_of_meeting_;
  std::vector<int32_t> sleepers_of_step_, sleepers_of_meeting_, next_sleeper_, came_, runnable_;
};

int64_t Replay::length(std::span<const double> factor) const {
  if (factor.size() != static_cast<size_t>(steps_.parts))
    throw Error(PW_INVALID_ARGUMENT,
                "trace: a replay needs one factor for each part; this is an error of Peerway");
  return Run(*this, factor, nullptr)();
}

std::vector<Stretch> Replay::path() const {
  std::vector<Stretch> stretches;
  if (steps_.begin.empty()) return stretches;
  std::vector<int32_t> bound(steps_.begin.size(), -1);
  const std::vector<double> as_it_was(static_cast<size_t>(steps_.parts), 1.0);
  Run(*this, as_it_was, &bound)();
  size_t step = 0;
  for (size_t i = 1; i < steps_.begin.size(); ++i)
    if (end_of(i) > end_of(step)) step = i;
  for (auto now = end_of(step); now > 0;) {
    // First the time within the step, after it could begin its own work; before that, the lane that it waited
    // for.
    const auto from = std::min(now, end_of(step) - work_[step]);
    const bool waited = bound[step] >= 0 && now > from;
    if (now > steps_.begin[step] || waited)
      stretches.push_back({static_cast<int32_t>(step), true, waited ? from : steps_.begin[step], now});
    if (waited) {
      step = static_cast<size_t>(bound[step]);
      now = from;
      continue;
    }
    now = std::min(now, steps_.begin[step]);
    const auto lane =
        std::ranges::upper_bound(steps_.lane, static_cast<int64_t>(step)) - steps_.lane.begin() - 1;
    const bool first = static_cast<int64_t>(step) == steps_.lane[static_cast<size_t>(lane)];
    const auto before = first ? 0 : end_of(step - 1);
    if (now > before) stretches.push_back({static_cast<int32_t>(step), false, before, now});
    if (first) break;
    now = before;
    --step;
  }
  return stretches;
}

}  // namespace pw::trace
