// The proxy does for devices what they cannot do themselves: transfers over paths that need the CPU. Devices
// trigger it through words in host memory, and it answers in such words, so that no thread of the program is
// needed between a start and its finish. It is a source of the context's progress.
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
  waiting,   ///< something was, and waits for another rank
  progress,  ///< something was done
};

/// Something that the proxy polls: a plan's posted operations, or a FIFO.
class Served {
 public:
  virtual ~Served() = default;

  /// Does what can be done now; nothing in it waits.
  virtual Poll poll() = 0;

  /// Ends it: it is polled no more.
  virtual void cancel(pw_status why, const std::string& message) = 0;
};

/// One a context, made with the first plan that needs it.
class Proxy final : public Source {
 public:
  static std::shared_ptr<Proxy> of(Context& context);

  explicit Proxy(Context& context);
  Proxy(const Proxy&) = delete;

  /// Throws Error when the proxy has failed.
  void serve(std::shared_ptr<Served> served);

  /// Returns once no thread is at it, and none will be.
  void forget(const Served& served);

  bool turn() override;
  Armed arm(bool sleepers) override;
  [[nodiscard]] bool has_work() const override { return active_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t awake_ns() const override;

 private:
  Poll poll_all();
  void fail(const std::string& message) noexcept;

  Context& context_;
  std::mutex turning_;               ///< one thread at a time
  std::atomic<bool> active_{false};  ///< something is triggered, and not done
  std::atomic<uint64_t> count_{0};   ///< of what is served
  std::atomic<uint64_t> since_{0};   ///< ns: when something was done last
  std::mutex mutex_;                 ///< protects what follows
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Served>> served_;
  std::shared_ptr<Served> current_;  ///< at which a thread is
  int forgetting_ = 0;               ///< threads that wait for it to leave
  std::string failure_;              ///< of the proxy; empty while it works
};

}  // namespace pw
