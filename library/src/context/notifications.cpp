#include "context/notifications.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "base/timeout.h"

namespace pw {

pw_status Notifications::after(Path& path, int rank, const Notification& notification) {
  Remote& signal = *notification.signal;
  if (path.completes_at_start() && signal.word() != nullptr) return this->notify({}, notification, nullptr);
  // A path's own stores come after its own transfers.
  if (rank == signal.rank() && path.can_store_word(signal)) return this->notify({}, notification, &path);
  Marks before;
  before.add(path, rank);
  return after(std::move(before), notification);
}

pw_status Notifications::after(Marks before, const Notification& notification) {
  Remote& signal = *notification.signal;
  return this->notify(std::move(before), notification, signal.word() != nullptr ? nullptr : &far_(signal));
}

pw_status Notifications::notify(Marks before, const Notification& notification, Path* storing) {
  SignalTurn turn;
  if (const pw_status status = turn.begin(notification, storing); status != PW_OK) return status;
  if (turn.can_store_now() && before.reached()) {
    const pw_status status = before.outcome();
    return status == PW_OK ? make(turn, storing) : status;
  }
  defer(turn, std::move(before), notification, storing);
  return PW_OK;
}

pw_status Notifications::make(SignalTurn& turn, Path* storing) {
  if (storing == nullptr) {
    turn.store_by_cpu();
    return PW_OK;
  }
  const pw_status status = storing->store_word(turn.signal(), turn.total());
  if (status == PW_OK) turn.stored();
  return status;
}

// Called while `turn` is held, so that notifications of one signal are queued in order.
void Notifications::defer(SignalTurn& turn, Marks before, const Notification& notification, Path* storing) {
  std::lock_guard lock(mutex_);
  const uint64_t number = ++by_rank_[notification.signal->rank()].deferred;
  deferred_.push_back({notification.signal->shared_from_this(), notification.by, storing, std::move(before),
                       number, Stage::deferred, nullptr});
  ++turn.sender().deferred;
  open_.fetch_add(1, std::memory_order_relaxed);
  since_.store(now_ns(), std::memory_order_relaxed);
  progress_.wake_if_asleep();
}

void Notifications::reserve(Remote& signal) {
  SignalSender& sender = *signal.sender();
  {
    std::lock_guard lock(sender.lock);
    if (sender.planned)
      throw Error(PW_INVALID_ARGUMENT,
                  format("this signal of rank {} is notified by another plan or by kernels of this "
                         "rank, or twice by this plan",
                         signal.rank()));
    sender.planned = true;
  }
  try {
    settle(signal);
  } catch (...) {
    give_back(signal);
    throw;
  }
}

void Notifications::give_back(Remote& signal) {
  std::lock_guard lock(signal.sender()->lock);
  signal.sender()->planned = false;
}

void Notifications::settle(Remote& signal) {
  SignalSender& sender = *signal.sender();
  Marks marks;
  bool added = false;
  const auto arrived = [&] {
    if (!added) {
      std::lock_guard lock(sender.lock);
      if (sender.deferred > 0) return false;
      if (sender.through != nullptr) marks.add(*sender.through, signal.rank());
      added = true;
    }
    return marks.reached();
  };
  pw_status status = PW_OK;
  if (!arrived())
    status = progress_.wait({team_, signal.rank(), deadline_after(settings::timeout.nanoseconds()),
                             "notifications of a signal to arrive"},
                            this, arrived, Wakes::perhaps);
  if (status == PW_OK) status = marks.outcome();
  if (status != PW_OK) throw Error(status, last_error_message());
}

// ---- queued notifications ----

bool Notifications::poll() {
  if (!has_work()) return false;
  const std::unique_lock polling(polling_, std::try_to_lock);
  if (!polling.owns_lock()) return false;
  std::vector<Deferred*> all;
  {
    std::lock_guard lock(mutex_);
    for (Deferred& deferred : deferred_) all.push_back(&deferred);
  }
  std::vector<const SignalSender*> blocked;  // senders with an earlier notification that is not stored yet
  std::vector<const Deferred*> ended;
  bool happened = false;
  for (Deferred* deferred : all) {
    const SignalSender* sender = deferred->signal->sender();
    const Stage stage = deferred->stage;
    if (stage < Stage::stored && std::ranges::find(blocked, sender) != blocked.end()) continue;
    if (advance(*deferred)) ended.push_back(deferred);
    if (deferred->stage < Stage::stored) blocked.push_back(sender);
    happened |= deferred->stage != stage;
  }
  if (happened) since_.store(now_ns(), std::memory_order_relaxed);
  forget(ended);
  return happened;
}

void Notifications::forget(const std::vector<const Deferred*>& ended) {
  if (ended.empty()) return;
  std::list<Deferred> over;  // remotes may be destroyed with their entries, so do that without the lock
  std::lock_guard lock(mutex_);
  for (auto each = deferred_.begin(); each != deferred_.end();) {
    const auto next = std::next(each);
    if (std::ranges::find(ended, &*each) != ended.end()) over.splice(over.end(), deferred_, each);
    each = next;
  }
  open_.fetch_sub(ended.size(), std::memory_order_release);
}

// Does what can be done now; returns true when the notification has arrived or failed.
bool Notifications::advance(Deferred& deferred) {
  while (deferred.before.reached()) {
    const pw_status status = catch_errors([&] {
      const pw_status so_far = deferred.before.outcome();
      return so_far == PW_OK ? enter_next(deferred) : so_far;
    });
    if (status == PW_OK && deferred.stage != Stage::arrived) continue;
    end(deferred, status);
    return true;
  }
  return false;
}

pw_status Notifications::enter_next(Deferred& deferred) {
  Remote& signal = *deferred.signal;
  SignalSender& sender = *signal.sender();
  Path* const path = deferred.path;
  switch (deferred.stage) {
    case Stage::deferred: {
      std::lock_guard lock(sender.lock);
      if (sender.through != nullptr && sender.through != path)
        deferred.before.add(*sender.through, signal.rank());
      deferred.stage = Stage::in_order;
      return PW_OK;
    }
    case Stage::in_order:
      if (!sender.known.load(std::memory_order_relaxed)) {
        deferred.fetched = path->fetch_word(signal);
        deferred.before.add(*path, signal.rank());
      }
      deferred.stage = Stage::fetched;
      return PW_OK;
    case Stage::fetched:
      if (const pw_status status = store_word(deferred); status != PW_OK) return status;
      if (path != nullptr) deferred.before.add(*path, signal.rank());
      deferred.stage = Stage::stored;
      return PW_OK;
    default:
      deferred.stage = Stage::arrived;
      return PW_OK;
  }
}

pw_status Notifications::store_word(const Deferred& deferred) {
  Remote& signal = *deferred.signal;
  SignalSender& sender = *signal.sender();
  if (team_.lost(signal.rank())) return fail(PW_PEER_LOST, team_.describe_loss(signal.rank()));
  if (!signal.current())
    return fail(PW_STALE_KEY,
                format("the signal of rank {} was closed before it could be notified", signal.rank()));
  std::lock_guard lock(sender.lock);
  if (deferred.fetched != nullptr && !sender.known.load(std::memory_order_relaxed)) {
    sender.notified = *deferred.fetched;
    sender.known.store(true, std::memory_order_release);
  }
  const uint64_t total = sender.notified + deferred.by;
  if (total < deferred.by)
    return fail(PW_OUT_OF_RANGE, format("a notification by {} of a signal that this rank has "
                                        "notified up to {} goes past 64 bits",
                                        deferred.by, sender.notified));
  if (deferred.path == nullptr) {
    signal.word()->store(total, std::memory_order_release);
    wake(*signal.sleepers());
  } else if (const pw_status status = deferred.path->store_word(signal, total); status != PW_OK) {
    return status;
  }
  sender.notified = total;
  sender.through = deferred.path;
  --sender.deferred;
  return PW_OK;
}

// The next flush towards the signal's owner reports the failure.
void Notifications::end(const Deferred& deferred, pw_status status) {
  if (deferred.stage < Stage::stored) {
    std::lock_guard lock(deferred.signal->sender()->lock);
    --deferred.signal->sender()->deferred;
  }
  if (status == PW_OK) return;
  const std::string why = last_error_message();
  std::lock_guard lock(mutex_);
  RankNotifications& all = by_rank_[deferred.signal->rank()];
  if (all.failed != PW_OK) return;
  all.failed = status;
  all.why = why;
  failed_.store(true, std::memory_order_release);
}

// The marks may be reached by an event that wakes nobody, so the progress thread only naps, and looks again.
Armed Notifications::arm(bool) {
  std::lock_guard lock(mutex_);  // defer() holds this lock while it checks whether a thread sleeps
  if (!has_work()) return {};
  const uint64_t waited = now_ns() - since_.load(std::memory_order_relaxed);
  return {-1, progress_.waiting().nap_ns(Wakes::perhaps, waited)};
}

// ---- marks ----

Mark Notifications::mark(int rank) {
  if (!has_work() && !failed_.load(std::memory_order_acquire)) return 0;
  std::lock_guard lock(mutex_);
  const auto known = by_rank_.find(rank);
  if (known == by_rank_.end()) return 0;
  const auto towards = [&](const Deferred& deferred) { return deferred.signal->rank() == rank; };
  return known->second.failed != PW_OK || std::ranges::any_of(deferred_, towards) ? known->second.deferred
                                                                                  : 0;
}

bool Notifications::reached(int rank, Mark mark) {
  std::lock_guard lock(mutex_);
  return std::ranges::none_of(deferred_, [&](const Deferred& deferred) {
    return deferred.signal->rank() == rank && deferred.number <= mark;
  });
}

pw_status Notifications::outcome(int rank, Mark) {
  std::lock_guard lock(mutex_);
  RankNotifications& all = by_rank_[rank];
  const pw_status failed = std::exchange(all.failed, PW_OK);
  return failed == PW_OK ? PW_OK : fail(failed, all.why);
}

}  // namespace pw
