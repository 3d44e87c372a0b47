#include "transport/transfer_queue.h"

#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "transport/staged/request.h"

namespace pw {

pw_status TransferQueue::start(const Transfer& transfer, SignalTurn* turn) {
  const std::lock_guard lock(mutex_);
  if (ended()) return why_ended();
  QueuedTransfer next{transfer};
  if (turn != nullptr) {
    next.signal = &turn->signal();
    next.total = turn->total();
    next.by = turn->total() - turn->sender().notified;
  }
  bool done = false;
  if (queue_.empty())
    if (const pw_status status = advance(next, done); status != PW_OK) return status;
  if (turn != nullptr) turn->stored();
  accepted_.fetch_add(1, std::memory_order_release);
  if (done) {
    moved_.fetch_add(1, std::memory_order_release);
    return PW_OK;
  }
  next.kept = {transfer.local->shared_from_this(), transfer.remote->shared_from_this()};
  if (next.signal != nullptr) next.kept.push_back(next.signal->shared_from_this());
  queue_.push_back(std::move(next));
  waiting_.fetch_add(1, std::memory_order_release);
  progress_.wake_if_asleep();
  return PW_OK;
}

pw_status TransferQueue::why_ended() {
  const pw_status broken = broken_.load(std::memory_order_acquire);
  return broken != PW_OK && !over() ? refuse_after(broken, rank_) : why_over();
}

// A failure before the other end was asked has no effect there. After that, the two ends disagree about the
// ring, so nothing can follow.
pw_status TransferQueue::advance(QueuedTransfer& next, bool& done) {
  const pw_status status = go_on(next, done);
  if (status != PW_OK && next.posted) broken_.store(status, std::memory_order_release);
  return status;
}

// ---- queued transfers ----

bool TransferQueue::waits() {
  const std::lock_guard lock(mutex_);
  return !queue_.empty();
}

bool TransferQueue::poll() {
  std::vector<Unstored> unstored;
  std::deque<QueuedTransfer>
      finished;  // destroyed after the lock is released, with the objects that they keep
  bool happened = false;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || queue_.empty()) return false;
    if (ended()) return drop_all();
    const uint64_t before = chunks();
    const bool goes_on = give_up_closed(unstored);
    if (!give_up_refused(finished, unstored) && goes_on) {
      go_on_with_all(finished, unstored);
      if (!queue_.empty()) {  // the other end may have made progress before it learned that this end waits
        blocked();
        go_on_with_all(finished, unstored);
      }
    }
    waiting_.fetch_sub(finished.size(), std::memory_order_release);
    happened = !finished.empty() || chunks() != before;
  }
  for (const Unstored& notification : unstored) {
    std::lock_guard lock(notification.signal->sender()->lock);
    notification.signal->sender()->notified -= notification.by;
  }
  return happened;
}

void TransferQueue::go_on_with_all(std::deque<QueuedTransfer>& finished, std::vector<Unstored>& unstored) {
  while (!queue_.empty() && !ended()) {
    QueuedTransfer& next = queue_.front();
    bool done = false;
    if (const pw_status status = catch_errors([&] { return advance(next, done); }); status != PW_OK) {
      record_failure(status);
      give_up(next, unstored);  // it continues without its bytes
    } else if (done) {
      finished.push_back(std::move(next));
      queue_.pop_front();
      moved_.fetch_add(1, std::memory_order_release);
    } else {
      break;
    }
  }
}

// The transfer's notification is not made, so the totals of later ones shrink by it.
void TransferQueue::give_up(QueuedTransfer& waiting, std::vector<Unstored>& unstored) {
  waiting.given_up = true;
  Remote* const signal = std::exchange(waiting.signal, nullptr);
  if (signal == nullptr) return;
  unstored.push_back({signal->shared_from_this(), waiting.by});
  for (QueuedTransfer& later : queue_)
    if (later.signal != nullptr && later.signal->sender() == signal->sender() && later.total > waiting.total)
      later.total -= waiting.by;
}

// Gives up transfers whose region was closed: its owner waits until nobody uses it. Returns false while a
// device still uses the memory of the first transfer, which then must not continue.
bool TransferQueue::give_up_closed(std::vector<Unstored>& unstored) {
  bool all_given_up = true;
  for (QueuedTransfer& waiting : queue_) {
    if (waiting.given_up || !waiting.transfer.local->closed()) continue;
    if (waiting.posted && !leave_memory()) {
      all_given_up = false;
      continue;
    }
    give_up(waiting, unstored);
    waiting.kept.erase(waiting.kept.begin());
    record_failure(
        fail(PW_STALE_KEY, format("a region was closed before its staged transfer with rank {} was "
                                  "complete; flush before it is closed",
                                  rank_)));
  }
  return all_given_up;
}

bool TransferQueue::give_up_refused(std::deque<QueuedTransfer>& finished, std::vector<Unstored>& unstored) {
  const pw_status status = refused();
  if (status == PW_OK) return false;
  record_failure(status);
  for (QueuedTransfer& waiting : queue_) give_up(waiting, unstored);
  finished.swap(queue_);
  const uint64_t all = accepted_.load(std::memory_order_relaxed);
  refused_.store(all, std::memory_order_release);
  moved_.store(all, std::memory_order_release);
  return true;
}

// Returns false while a device still uses the memory.
bool TransferQueue::drop_all() {
  if (!unused()) return false;
  waiting_.fetch_sub(queue_.size(), std::memory_order_release);
  queue_.clear();
  return true;
}

// ---- marks ----

// Called without the lock, which a thread in the middle of a transfer holds.
bool TransferQueue::done(Mark mark) const {
  const uint64_t refused = refused_.load(std::memory_order_acquire);
  return moved_.load(std::memory_order_acquire) >= mark && (refused >= mark || served(mark - refused));
}

bool TransferQueue::reached(Mark mark) {
  if (done(mark)) return true;
  if (!ended()) return false;
  const std::lock_guard lock(mutex_);
  return drop_all();  // a caller that sees the failure may free the memory
}

pw_status TransferQueue::outcome(Mark mark) {
  {
    const std::lock_guard lock(mutex_);
    if (const pw_status failed = std::exchange(failed_, PW_OK); failed != PW_OK) return fail(failed, why_);
  }
  return done(mark) ? outcome_there() : why_ended();
}

// Records a failure; its message is this thread's last.
void TransferQueue::record_failure(pw_status failed) {
  if (failed_ != PW_OK) return;
  failed_ = failed;
  why_ = last_error_message();
}

}  // namespace pw
