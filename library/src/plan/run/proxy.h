// The proxy does for devices what they cannot do themselves: transfers over paths that need the CPU. A device
// triggers it by a word in host memory, and it answers in another. It is a source of progress: threads that
// wait poll it, otherwise the progress thread. So the program needs no thread of its own for the proxy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context/context.h"

namespace pw {

/// The outcome of a poll.
enum class Poll : uint8_t {
  idle,      ///< nothing was triggered
  waiting,   ///< something was triggered, and waits for another rank
  progress,  ///< something was done
};

/// What the proxy serves: the posted operations of a plan, or a FIFO.
class Served {
 public:
  virtual ~Served() = default;

  /// Does what can be done now, and never waits.
  virtual Poll poll() = 0;

  /// Called if the proxy fails: ends the plan or FIFO with this error. It is not polled again.
  virtual void cancel(pw_status why, const std::string& message) = 0;
};

/// A context has one proxy. It is made for the first plan or FIFO that needs it.
class Proxy final : public Source {
 public:
  static std::shared_ptr<Proxy> of(Context& context);

  explicit Proxy(Context& context);
  Proxy(const Proxy&) = delete;

  /// Polls `served` from now on. Throws Error if the proxy has failed.
  void serve(std::shared_ptr<Served> served);

  /// Stops polling `served`. When this returns, no thread is in its poll().
  void forget(const Served& served);

  bool poll() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool has_work() const override { return active_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t awake_ns() const override;

 private:
  Poll poll_all();
  void fail(const std::string& message) noexcept;

  Context& context_;
  std::mutex polling_;               ///< held by the thread that polls
  std::atomic<bool> active_{false};  ///< whether something was triggered that is not done
  std::atomic<uint64_t> count_{0};   ///< size of `served_`
  std::atomic<uint64_t> since_{0};   ///< ns: when something was done last
  std::mutex mutex_;                 ///< protects the members below
  std::condition_variable changed_;  ///< `current_` has changed
  std::vector<std::shared_ptr<Served>> served_;
  std::shared_ptr<Served> current_;  ///< what a thread is polling now
  int forgetting_ = 0;               ///< number of threads in forget()
  std::string failure_;              ///< why the proxy failed; empty while it works
};

}  // namespace pw
