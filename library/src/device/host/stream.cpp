#include "device/host/stream.h"

namespace pw {

HostStream::HostStream() : thread_([this] { run(); }) {}

HostStream::~HostStream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void HostStream::enqueue(std::function<void()> call) {
  {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_one();
}

bool HostStream::idle() {
  std::lock_guard lock(mutex_);
  return calls_.empty() && !busy_;
}

void HostStream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !calls_.empty(); });
    if (calls_.empty()) return;
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    busy_ = true;
    lock.unlock();
    call();
    lock.lock();
    busy_ = false;
  }
}

}  // namespace pw
