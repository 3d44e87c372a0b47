// A stream on the host: a worker thread with a queue of calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pw {

class HostStream {
 public:
  HostStream();
  ~HostStream();  ///< waits for all enqueued calls
  HostStream(const HostStream&) = delete;

  void enqueue(std::function<void()> call);
  [[nodiscard]] bool idle();
  [[nodiscard]] bool runs_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace pw
