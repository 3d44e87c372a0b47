#include "transport/signal_turn.h"

#include "base/format.h"
#include "base/status.h"
#include "transport/path.h"

namespace pw {
namespace {

// Returns whether nothing that the sender notified by another path is still under way.
bool settled(const SignalSender& sender, int rank, const Path* storing, pw_status& failed) {
  if (sender.through == nullptr || sender.through == storing) return true;
  Marks marks;
  marks.add(*sender.through, rank);
  if (!marks.reached()) return false;
  failed = marks.outcome();
  return true;
}

}  // namespace

pw_status SignalTurn::begin(const Notification& notification, Path* storing) {
  notification_ = notification;
  storing_ = storing;
  const SignalSender& sender = this->sender();
  lock_ = std::unique_lock(this->sender().lock);
  if (sender.planned && !notification.by_plan)
    return fail(PW_INVALID_ARGUMENT,
                format("this signal of rank {} is notified by a plan of this rank; free the plan, or use "
                       "another signal",
                       notification.signal->rank()));
  if (total() < notification.by)
    return fail(PW_OUT_OF_RANGE, format("a notification by {} of a signal that this rank has "
                                        "notified up to {} goes past 64 bits",
                                        notification.by, sender.notified));
  pw_status failed = PW_OK;
  can_store_now_ = sender.deferred == 0 && sender.known.load(std::memory_order_relaxed) &&
                   settled(sender, notification.signal->rank(), storing, failed);
  return failed;
}

void SignalTurn::stored() {
  sender().notified = total();
  sender().through = storing_;
  lock_.unlock();
}

void SignalTurn::store_by_cpu() {
  notification_.signal->word()->store(total(), std::memory_order_release);
  stored();
  wake(*notification_.signal->sleepers());
}

}  // namespace pw
