// How the threads of one context wait: the policy, where they sleep, and how long they poll before that.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/relax.h"
#include "base/setting.h"
#include "base/sleeper.h"

namespace pw {

/// The values of the setting `wait`; peerway::WaitPolicy is the same for programs.
enum class WaitPolicy : uint8_t { busy_poll, blocking };

namespace settings {

extern const ChoiceSetting<WaitPolicy> wait;

}  // namespace settings

/// Whether wake() is called when the awaited event has occurred.
enum class Wakes : uint8_t {
  unless_unseen,  ///< yes, unless Sleepers::unseen counts something that wakes nobody
  always,
  perhaps,
};

/// Decides how long a wait polls before it sleeps, from the duration of the last wait at the same place: a
/// wait that is shorter than a sleep and its wake-up should poll.
class PollTime {
 public:
  [[nodiscard]] uint64_t ns() const { return soon_ ? kSleepCost : kLook; }
  void polled() { soon_ = true; }
  /// Records a wait that slept. The time includes this thread's wake-up, and the partner's if it slept too.
  /// The limit allows for both; otherwise two ranks that always sleep would never learn that messages come
  /// soon.
  void slept(uint64_t took_ns) { soon_ = took_ns <= 3 * kSleepCost; }

 private:
  // On a virtual machine with H100s, the callback with which a GPU's driver wakes this thread used 45 us of
  // CPU time, and came 45 us late.
  static constexpr uint64_t kSleepCost = 50'000, kLook = 5'000;
  bool soon_ = true;
};

class Waiting {
 public:
  explicit Waiting(std::shared_ptr<Sleepers> sleepers) : sleepers_(std::move(sleepers)) {}

  [[nodiscard]] bool blocking() const { return blocking_.load(std::memory_order_relaxed); }
  void set_blocking(bool blocking) { blocking_.store(blocking, std::memory_order_relaxed); }

  /// Ranks share CPUs, so a spinning thread may keep the thread that it waits for from running.
  [[nodiscard]] bool oversubscribed() const { return oversubscribed_.load(std::memory_order_relaxed); }
  void set_oversubscribed(bool oversubscribed) {
    oversubscribed_.store(oversubscribed, std::memory_order_relaxed);
  }

  [[nodiscard]] Sleepers& sleepers() const { return *sleepers_; }
  void wake() const { pw::wake(*sleepers_); }

  /// Number of polls without a pause, before all others. A pause takes 40 ns on some CPUs, so on average it
  /// would delay the answer of a rank on the same host by half of that.
  [[nodiscard]] int quick_polls() const { return oversubscribed() ? 1 : kQuickPolls; }
  /// Polls before the CPU is yielded for the first time. Returns false if `done()` is still false.
  template <typename Done>
  bool poll_first(Done&& done) const {
    for (int i = oversubscribed() ? kOversubscribedPolls : kIdlePolls; i > 0; --i) {
      if (done()) return true;
      relax();
    }
    return false;
  }
  /// Polls for a while before a sleep. The limit is a time and not a number, because one poll may ask the
  /// driver of a GPU, which takes as long as a hundred reads of a flag.
  template <typename Done>
  bool poll_before_sleep(PollTime& poll_time, Done&& done) const {
    if (oversubscribed()) return poll_first(done);
    const uint64_t until = now_ns() + poll_time.ns();
    do {
      if (done()) return poll_time.polled(), true;
      relax();
    } while (now_ns() < until);
    return false;
  }
  /// Number of polls between further checks of the time.
  [[nodiscard]] int polls_between() const { return oversubscribed() ? 1 : 16; }

  /// Returns the longest time to sleep, having waited for `waited_ns`. If no wake-up is certain, it is an
  /// eighth of `waited_ns`: so the end is noticed late by at most an eighth of the wait, and a long wait
  /// costs little.
  [[nodiscard]] uint64_t nap_ns(Wakes wakes, uint64_t waited_ns) const {
    constexpr uint64_t kShortest = 20'000, kLongest = 1'000'000, kBackstop = 10'000'000;
    if (wakes == Wakes::unless_unseen)
      wakes = sleepers_->unseen.load(std::memory_order_relaxed) == 0 ? Wakes::always : Wakes::perhaps;
    return wakes == Wakes::always ? kBackstop : std::clamp(waited_ns / 8, kShortest, kLongest);
  }

 private:
  static constexpr int kQuickPolls = 128;          // about as long as an answer from the same host takes
  static constexpr int kIdlePolls = 4096;          // longer than any wait between processes that both run
  static constexpr int kOversubscribedPolls = 32;  // about as long as yielding the CPU takes

  std::shared_ptr<Sleepers> sleepers_;
  std::atomic<bool> blocking_{false};
  std::atomic<bool> oversubscribed_{false};
};

/// Informs a wait of an event by a callback, which may come when nobody waits any more.
class Notice {
 public:
  explicit Notice(std::shared_ptr<const Waiting> waiting) : waiting_(std::move(waiting)) {}
  [[nodiscard]] bool given() const { return given_.load(std::memory_order_acquire); }

  /// Returns the argument for the callback; it must be passed to give() or take_back().
  static void* hand_out(const std::shared_ptr<Notice>& notice) { return new std::shared_ptr<Notice>(notice); }
  static void take_back(void* user) { delete static_cast<std::shared_ptr<Notice>*>(user); }
  static void give(void* user) {
    Notice& notice = **static_cast<std::shared_ptr<Notice>*>(user);
    notice.given_.store(true, std::memory_order_release);
    notice.waiting_->wake();
    take_back(user);
  }

 private:
  std::shared_ptr<const Waiting> waiting_;
  std::atomic<bool> given_{false};
};

}  // namespace pw
