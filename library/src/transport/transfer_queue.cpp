#include "transport/transfer_queue.h"

#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "transport/staged/request.h"

namespace pw {

pw_status TransferQueue::start(const Transfer& transfer, SignalTurn* turn) {
  const std::lock_guard lock(mutex_);
  if (ended()) return why_ended();
  Waiting next{transfer};
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

// A failure before the other end was asked leaves no trace; a later one leaves the two ends with different
// views of what is where.
pw_status TransferQueue::advance(Waiting& next, bool& done) {
  const pw_status status = go_on(next, done);
  if (status != PW_OK && next.posted) broken_.store(status, std::memory_order_release);
  return status;
}

// ---- what waits ----

bool TransferQueue::waits() {
  const std::lock_guard lock(mutex_);
  return !queue_.empty();
}

bool TransferQueue::turn() {
  std::vector<Unstored> unstored;
  std::deque<Waiting> finished;  // what they kept goes without the lock
  bool happened = false;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || queue_.empty()) return false;
    if (ended()) return drop_all();
    const uint64_t before = chunks();
    const bool goes_on = give_up_closed(unstored);
    if (!give_up_refused(finished, unstored) && goes_on) {
      go_on_with_all(finished, unstored);
      if (!queue_.empty()) {  // the other end may have moved on before it was told that this one waits
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

void TransferQueue::go_on_with_all(std::deque<Waiting>& finished, std::vector<Unstored>& unstored) {
  while (!queue_.empty() && !ended()) {
    Waiting& next = queue_.front();
    bool done = false;
    if (const pw_status status = guard([&] { return advance(next, done); }); status != PW_OK) {
      note(status);
      give_up(next, unstored);  // and it goes on, without its bytes
    } else if (done) {
      finished.push_back(std::move(next));
      queue_.pop_front();
      moved_.fetch_add(1, std::memory_order_release);
    } else {
      break;
    }
  }
}

// Its notification is not made, so that later ones come to less.
void TransferQueue::give_up(Waiting& waiting, std::vector<Unstored>& unstored) {
  waiting.given_up = true;
  Remote* const signal = std::exchange(waiting.signal, nullptr);
  if (signal == nullptr) return;
  unstored.push_back({signal->shared_from_this(), waiting.by});
  for (Waiting& later : queue_)
    if (later.signal != nullptr && later.signal->sender() == signal->sender() && later.total > waiting.total)
      later.total -= waiting.by;
}

// The owner of a region wants it back, and waits until nobody holds it. False while a device still uses that
// of the first, which is not to go on meanwhile.
bool TransferQueue::give_up_closed(std::vector<Unstored>& unstored) {
  bool all_given_up = true;
  for (Waiting& waiting : queue_) {
    if (waiting.given_up || !waiting.transfer.local->closed()) continue;
    if (waiting.posted && !leave_memory()) {
      all_given_up = false;
      continue;
    }
    give_up(waiting, unstored);
    waiting.kept.erase(waiting.kept.begin());
    note(fail(PW_STALE_KEY, format("a region was closed before its staged transfer with rank {} was "
                                   "complete; flush before it is closed",
                                   rank_)));
  }
  return all_given_up;
}

bool TransferQueue::give_up_refused(std::deque<Waiting>& finished, std::vector<Unstored>& unstored) {
  const pw_status status = refused();
  if (status == PW_OK) return false;
  note(status);
  for (Waiting& waiting : queue_) give_up(waiting, unstored);
  finished.swap(queue_);
  const uint64_t all = accepted_.load(std::memory_order_relaxed);
  refused_.store(all, std::memory_order_release);
  moved_.store(all, std::memory_order_release);
  return true;
}

// False while a device still uses the memory.
bool TransferQueue::drop_all() {
  if (!unused()) return false;
  waiting_.fetch_sub(queue_.size(), std::memory_order_release);
  queue_.clear();
  return true;
}

// ---- marks ----

// Without the lock, which a thread in the middle of a transfer has.
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

// The message is that of the failure.
void TransferQueue::note(pw_status failed) {
  if (failed_ != PW_OK) return;
  failed_ = failed;
  why_ = last_error_message();
}

}  // namespace pw
