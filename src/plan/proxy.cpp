#include "plan/proxy.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/relax.h"

namespace pw {
namespace {

/// What the thread does between two looks: it stays awake while something happens and sleeps in short naps
/// when nothing does. A device that triggers it can wake nobody, so it has to look. This is the place for a
/// policy of waiting.
class Rest {
 public:
  explicit Rest(Context& context) : progress_(context.progress()) {}

  void after(Look look) {
    if (look == Look::progress) return pause();
    const uint64_t now = now_ns();
    if (since_ == 0) since_ = now;
    const uint64_t idle = now - since_;
    if (idle >= kAwake) return nap(idle);
    if (!turning_) turning_.emplace(progress_, nullptr);
    turning_->look();  // what is waited for may come by a source
    if (idle < kSpin)
      relax();
    else
      sched_yield();
  }

  /// The thread is not looking for a while: it works, or sleeps until it is needed.
  void pause() {
    turning_.reset();
    since_ = 0;
  }

 private:
  static constexpr uint64_t kSpin = 30'000;      // ns: longer than most ranks are apart
  static constexpr uint64_t kAwake = 1'000'000;  // ns: then it naps, for a part of the time it was idle
  static constexpr uint64_t kShortest = 50'000, kLongest = 1'000'000;

  void nap(uint64_t idle) {
    turning_.reset();
    const timespec time{0, static_cast<long>(std::clamp(idle / 16, kShortest, kLongest))};
    nanosleep(&time, nullptr);
  }

  Progress& progress_;
  std::optional<Turning> turning_;  ///< while the thread looks often
  uint64_t since_ = 0;              ///< when nothing happened first; 0: something does
};

}  // namespace

std::shared_ptr<Proxy> Proxy::of(Context& context) {
  return std::static_pointer_cast<Proxy>(
      context.attachment([&] { return std::static_pointer_cast<void>(std::make_shared<Proxy>(context)); }));
}

Proxy::Proxy(Context& context) : context_(context), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "pw-proxy");
}

Proxy::~Proxy() {
  if (!context_.control().mine()) {  // a forked child: the thread stayed with the parent
    thread_.detach();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Proxy::serve(std::shared_ptr<Served> served) {
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(PW_INTERNAL, failure_);
    served_.push_back(std::move(served));
  }
  changed_.notify_all();
}

void Proxy::forget(const Served& served) {
  if (!context_.control().mine()) return;
  std::unique_lock lock(mutex_);
  std::erase_if(served_, [&](const auto& other) { return other.get() == &served; });
  ++forgetting_;
  changed_.wait(lock, [&] { return current_.get() != &served; });
  --forgetting_;
}

void Proxy::run() noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    fail(format("peerway: the proxy thread of this context failed: {}", error.what()));
  } catch (...) {
    fail("peerway: the proxy thread of this context failed: an exception that is no std::exception");
  }
}

void Proxy::work() {
  Rest rest(context_);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (served_.empty() && !stop_) {
        rest.pause();
        changed_.wait(lock, [&] { return stop_ || !served_.empty(); });
      }
      if (stop_) return;
    }
    rest.after(look_at_all());
  }
}

// The lock is not held during a look, which may take long: plans come and go meanwhile.
Look Proxy::look_at_all() {
  Look most = Look::idle;
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < served_.size() && !stop_; ++i) {
    current_ = served_[i];
    Served& served = *current_;
    lock.unlock();
    most = std::max(most, served.look());
    lock.lock();
    current_ = nullptr;
    if (forgetting_ > 0) changed_.notify_all();
  }
  return most;
}

void Proxy::fail(const std::string& message) noexcept {
  log(LogLevel::error, message);
  std::lock_guard lock(mutex_);
  failure_ = message;
  current_ = nullptr;
  for (const auto& served : served_) served->cancel(PW_INTERNAL, message);
  served_.clear();
  changed_.notify_all();
}

}  // namespace pw
