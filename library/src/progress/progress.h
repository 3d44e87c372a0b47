// The progress engine of one context: all its sources, the one wait loop of its threads, and the one thread
// that polls the sources while no thread waits.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "base/waiting.h"
#include "device/device.h"
#include "memory/control.h"
#include "progress/source.h"
#include "team/wait.h"

namespace pw {

class Progress {
 public:
  Progress(Team& team, ControlSegment& control) : team_(team), control_(control) {}
  ~Progress() { stop(); }
  Progress(const Progress&) = delete;

  /// May be called at any time; the source must live until stop(). Throws Error.
  void add(Source& source);

  /// Start and end the thread.
  void start();
  void stop();

  /// Makes the thread look at the sources again; any thread may call it.
  void wake() const { control_.wakeup_pipe().wake(); }
  /// The same, but free while the thread is awake. The caller must hold a lock that arm() of its source
  /// takes.
  void wake_if_asleep() const {
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }

  /// Tells the thread that it will move this device's memory on behalf of peers.
  void serve(Device& device) { served_.store(&device, std::memory_order_release); }

  /// Polls each source once, for callers that ask whether something is done and do not wait.
  void poll_sources() const { poll_all(); }

  /// Waits until `done()` returns true and polls the sources meanwhile. `mine`, if not null, is the source
  /// that the wait depends on, and is called at every poll. While the threads sleep, the progress thread
  /// polls the sources. `before_sleep` is that of wait_until.
  template <typename Done, std::invocable BeforeSleep>
  pw_status wait(const WaitFor& wait, Source* mine, Done&& done, BeforeSleep&& before_sleep);
  template <typename Done>
  pw_status wait(const WaitFor& wait, Source* mine, Done&& done, Wakes wakes = Wakes::unless_unseen) {
    return this->wait(wait, mine, done, [wakes] { return wakes; });
  }

  /// The same for waits that depend on no single rank: only `done()`, the deadline and an interrupt end it.
  template <typename Done, std::invocable BeforeSleep>
  pw_status wait(uint64_t deadline_ns, const char* awaited, Source* mine, Done&& done,
                 BeforeSleep&& before_sleep) {
    return wait({team_, team_.rank(), deadline_ns, awaited}, mine, done, before_sleep);
  }

  [[nodiscard]] const Waiting& waiting() const { return *control_.waiting(); }

 private:
  friend class Polling;
  void run();
  void sleep(bool away);
  [[nodiscard]] std::span<Source* const> sources() const {
    return {all_.data(), count_.load(std::memory_order_acquire)};
  }
  bool poll_all(const Source* except = nullptr) const;
  [[nodiscard]] uint64_t linger_ns() const;
  void watch() const;
  bool unwatch() const;
  static void enter(Device& device);

  Team& team_;
  ControlSegment& control_;
  static constexpr size_t kMostSources = 32;
  std::mutex adding_;
  std::array<Source*, kMostSources> all_{};
  std::atomic<size_t> count_{0};  ///< number of leading entries in use
  std::atomic<int> pollers_{0};   ///< number of threads that poll the sources
  std::atomic<int> sleepers_{0};  ///< number of threads that sleep and leave polling to the progress thread
  std::atomic<bool> asleep_{false};
  std::atomic<Device*> served_{nullptr};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Used by a loop that waits: polls the sources, and keeps the progress thread from doing so meanwhile.
class Polling {
 public:
  Polling(Progress& progress, Source* mine);
  ~Polling() {
    if (counted_) progress_.pollers_.fetch_sub(1, std::memory_order_relaxed);
    if (watching_) leave();
  }
  Polling(const Polling&) = delete;

  /// Called at every poll of the loop.
  void poll() {
    // Polls all sources rarely, because most waits end within the first few polls or without any source.
    constexpr uint32_t kPolls = 16;
    if (sleeps_) return;
    if (mine_ != nullptr) mine_->poll();
    if (++polls_ % kPolls == 0) poll_others();
  }

 private:
  void poll_others();
  void leave();

  Progress& progress_;
  Source* const mine_;
  const bool sleeps_;  ///< the loop sleeps, and leaves polling to the progress thread
  bool counted_ = false;
  bool watching_ = false;
  uint32_t polls_ = 0;
};

template <typename Done, std::invocable BeforeSleep>
pw_status Progress::wait(const WaitFor& wait, Source* mine, Done&& done, BeforeSleep&& before_sleep) {
  struct Asleep {
    std::atomic<int>& count;
    int mine = 0;
    ~Asleep() { count.fetch_sub(mine, std::memory_order_relaxed); }
  } asleep{sleepers_};
  Polling polling(*this, mine);
  return wait_until(
      waiting(), wait,
      [&] {
        polling.poll();
        return done();
      },
      [&] {
        if (mine != nullptr) {
          asleep.mine = 1;
          sleepers_.fetch_add(1, std::memory_order_relaxed);
          wake();
        }
        return before_sleep();
      });
}

}  // namespace pw
