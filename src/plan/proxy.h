// The proxy thread: does for devices what they cannot do themselves, transfers over paths that need the
// processor. Devices trigger it by words in host memory, and it answers in such words, so that no host thread
// of the program is needed between a start and its finish.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "context/context.h"

namespace pw {

/// What a look has found.
enum class Look : uint8_t {
  idle,      ///< nothing was triggered
  waiting,   ///< something was, and waits for another rank
  progress,  ///< something was done
};

/// Something that the proxy thread looks at again and again: a plan's posted operations, or a FIFO.
class Served {
 public:
  virtual ~Served() = default;

  /// Does what can be done now. Transfers may take their time in it; what another rank must do first is not
  /// waited for.
  virtual Look look() = 0;

  /// Ends it: the proxy thread looks at it no more.
  virtual void cancel(pw_status why, const std::string& message) = 0;
};

/// One a context, made with the first plan that needs it.
class Proxy {
 public:
  static std::shared_ptr<Proxy> of(Context& context);

  explicit Proxy(Context& context);
  /// The context must be closed, which ends what the thread waits for.
  ~Proxy();
  Proxy(const Proxy&) = delete;

  /// Throws Error when the thread has failed.
  void serve(std::shared_ptr<Served> served);

  /// Returns once the thread is not at it and will not look at it any more.
  void forget(const Served& served);

 private:
  void run() noexcept;
  void work();
  Look look_at_all();
  void fail(const std::string& message) noexcept;

  Context& context_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Served>> served_;
  std::shared_ptr<Served> current_;  ///< at which the thread is
  int forgetting_ = 0;               ///< threads that wait for it to leave
  std::string failure_;              ///< of the thread; empty while it works
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace pw
