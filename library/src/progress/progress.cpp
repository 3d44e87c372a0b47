#include "progress/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr uint64_t kBackstop =
    1'000'000'000;  // ns: a backstop, because no event reports a rank that died while its sockets stayed open
constexpr uint64_t kAway = 200'000;  // ns: while other threads poll the sources, this thread only costs time

}  // namespace

void Progress::start() {
  watch();  // for the thread: it is awake from here on
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "pw-progress");
}

void Progress::stop() {
  if (!thread_.joinable()) return;
  if (!control_.mine()) {  // a forked child: the thread stayed in the parent
    thread_.detach();
    return;
  }
  stop_.store(true);
  wake();
  thread_.join();
}

bool Progress::poll_all(const Source* except) const {
  bool happened = false;
  for (Source* source : sources())
    if (source != except) happened |= source->poll();
  return happened;
}

void Progress::add(Source& source) {
  std::lock_guard lock(adding_);
  const size_t count = count_.load(std::memory_order_relaxed);
  if (count == kMostSources)
    throw Error(PW_UNSUPPORTED, format("more than {} sources of progress in one context", count));
  all_[count] = &source;
  count_.store(count + 1, std::memory_order_release);
}

// How long the thread continues to poll when nothing happens any more: about as long as a sleep and a wake
// take.
uint64_t Progress::linger_ns() const {
  constexpr uint64_t kLinger = 100'000, kBlockingLinger = 5'000;
  uint64_t longest = waiting().blocking() ? kBlockingLinger : kLinger;
  for (const Source* source : sources()) longest = std::max(longest, source->awake_ns());
  return longest;
}

void Progress::enter(Device& device) try { device.enter(); } catch (const Error& error) {
  log(LogLevel::warning, error.what());
}

// Peers increment Control::work_count, and write to the wakeup pipe only if no thread watches the counter.
// The last watcher therefore polls once more after it stops watching: either it sees the new count, or the
// peer sees that it must write.

void Progress::watch() const { control_.control().watchers.fetch_add(1, std::memory_order_seq_cst); }

bool Progress::unwatch() const {
  return control_.control().watchers.fetch_sub(1, std::memory_order_seq_cst) == 1;
}

void Progress::run() {
  constexpr int kPolls = 64;  // polls before other threads get the CPU
  uint64_t idle_since = now_ns();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (Device* device = served_.exchange(nullptr, std::memory_order_acquire)) enter(*device);
    const bool away = pollers_.load(std::memory_order_relaxed) > 0;
    int polls = 0;
    while (!away && polls < kPolls && poll_all()) ++polls;
    if (polls > 0) {
      waiting().wake();
      idle_since = now_ns();
    }
    if (!away && now_ns() - idle_since <= linger_ns())
      sched_yield();
    else
      sleep(away);
  }
  unwatch();
}

void Progress::sleep(bool away) {
  const WakeupPipe& wakeup_pipe = control_.wakeup_pipe();
  std::vector<pollfd> events{{wakeup_pipe.descriptor(), POLLIN, 0}};
  uint64_t longest = kBackstop;
  asleep_.store(!away, std::memory_order_seq_cst);
  unwatch();
  const bool sleepers = sleepers_.load(std::memory_order_seq_cst) > 0;
  for (Source* source : sources()) {
    if (away) {  // the threads that poll it may stop, and need not tell this thread
      if (!source->work_is_announced() || source->has_work()) longest = std::min(longest, kAway);
      continue;
    }
    const Armed armed = source->arm(sleepers);
    longest = std::min(longest, armed.longest_ns);
    if (armed.descriptor >= 0) events.push_back({armed.descriptor, POLLIN, 0});
  }
  if (longest == 0) {
    waiting().wake();  // something has arrived meanwhile, perhaps what a thread sleeps for
  } else if (!stop_.load()) {
    const timespec limit{static_cast<time_t>(longest / 1'000'000'000),
                         static_cast<long>(longest % 1'000'000'000)};
    ppoll(events.data(), events.size(), &limit, nullptr);
  }
  asleep_.store(false, std::memory_order_relaxed);
  watch();
  if (events.front().revents != 0) wakeup_pipe.clear();
}

Polling::Polling(Progress& progress, Source* mine)
    : progress_(progress),
      mine_(mine),
      sleeps_(progress.waiting().blocking() || !progress.control_.mine()),
      counted_(!sleeps_ && mine != nullptr) {
  if (counted_) progress_.pollers_.fetch_add(1, std::memory_order_relaxed);
}

void Polling::poll_others() {
  if (!watching_) {
    watching_ = true;
    if (!counted_) progress_.pollers_.fetch_add(1, std::memory_order_relaxed);
    counted_ = true;
    progress_.watch();
  }
  progress_.poll_all(mine_);
}

void Polling::leave() {
  const bool last = progress_.unwatch();
  if (last &&
      std::ranges::any_of(progress_.sources(), [](const Source* source) { return source->has_work(); }))
    progress_.wake();
}

}  // namespace pw
