#include "plan/run/proxy.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"

namespace pw {

std::shared_ptr<Proxy> Proxy::of(Context& context) {
  return std::static_pointer_cast<Proxy>(context.object_of_upper_layer([&] {
    const auto proxy = std::make_shared<Proxy>(context);
    context.progress().add(*proxy);
    return std::static_pointer_cast<void>(proxy);
  }));
}

Proxy::Proxy(Context& context) : context_(context) {}

void Proxy::serve(std::shared_ptr<Served> served) {
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(PW_INTERNAL, failure_);
    served_.push_back(std::move(served));
    count_.store(served_.size(), std::memory_order_relaxed);
    since_.store(now_ns(), std::memory_order_relaxed);
  }
  context_.progress().wake();
}

void Proxy::forget(const Served& served) {
  if (!context_.control().mine()) return;
  std::unique_lock lock(mutex_);
  std::erase_if(served_, [&](const auto& other) { return other.get() == &served; });
  count_.store(served_.size(), std::memory_order_relaxed);
  ++forgetting_;
  changed_.wait(lock, [&] { return current_.get() != &served; });
  --forgetting_;
}

// ---- progress ----

bool Proxy::poll() {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  const std::unique_lock polling(polling_, std::try_to_lock);
  if (!polling.owns_lock()) return false;
  Poll most = Poll::idle;
  try {
    most = poll_all();
  } catch (const std::exception& error) {
    fail(format("the proxy of this context failed: {}", error.what()));
  } catch (...) {
    fail("the proxy of this context failed: an exception that is not a std::exception");
  }
  active_.store(most != Poll::idle, std::memory_order_relaxed);
  if (most == Poll::progress) since_.store(now_ns(), std::memory_order_relaxed);
  return most == Poll::progress;
}

// `mutex_` is not held during a poll, so that plans can be added and freed meanwhile.
Poll Proxy::poll_all() {
  Poll most = Poll::idle;
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < served_.size(); ++i) {
    current_ = served_[i];
    Served& served = *current_;
    lock.unlock();
    most = std::max(most, served.poll());
    lock.lock();
    current_ = nullptr;
    if (forgetting_ > 0) changed_.notify_all();
  }
  return most;
}

// A device that triggers the proxy cannot wake a thread, so the progress thread must poll: all the time until
// nothing has happened for a millisecond, then with naps. A nap lasts a sixteenth of the time for which
// nothing has happened, within limits.

uint64_t Proxy::awake_ns() const {
  constexpr uint64_t kAwake = 1'000'000;
  return count_.load(std::memory_order_relaxed) == 0 ? 0 : kAwake;
}

Armed Proxy::arm(bool) {
  constexpr uint64_t kShortest = 50'000, kLongest = 1'000'000;
  std::lock_guard lock(mutex_);
  if (served_.empty()) return {};
  const uint64_t idle = now_ns() - since_.load(std::memory_order_relaxed);
  return {-1, std::clamp(idle / 16, kShortest, kLongest)};
}

void Proxy::fail(const std::string& message) noexcept {
  log(LogLevel::error, message);
  std::lock_guard lock(mutex_);
  failure_ = message;
  current_ = nullptr;
  for (const auto& served : served_) served->cancel(PW_INTERNAL, message);
  served_.clear();
  count_.store(0, std::memory_order_relaxed);
  changed_.notify_all();
}

}  // namespace pw
