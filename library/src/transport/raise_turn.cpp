#include "transport/raise_turn.h"

#include "base/format.h"
#include "base/status.h"
#include "transport/path.h"

namespace pw {
namespace {

// Whether nothing that the sender raised by another path is under way.
bool settled(const SignalSender& sender, int rank, const Path* by, pw_status& failed) {
  if (sender.through == nullptr || sender.through == by) return true;
  Marks marks;
  marks.add(*sender.through, rank);
  if (!marks.reached()) return false;
  failed = marks.outcome();
  return true;
}

}  // namespace

pw_status RaiseTurn::begin(const Raise& raise, Path* by) {
  raise_ = raise;
  by_ = by;
  const SignalSender& sender = this->sender();
  lock_ = std::unique_lock(this->sender().lock);
  if (sender.planned && !raise.by_plan)
    return fail(PW_INVALID_ARGUMENT,
                format("this signal of rank {} is raised by a plan of this rank; free the plan, or use "
                       "another signal",
                       raise.signal->rank()));
  if (total() < raise.by)
    return fail(PW_OUT_OF_RANGE,
                format("a raise by {} of a signal that this rank has raised to {} goes past 64 bits",
                       raise.by, sender.raised));
  pw_status failed = PW_OK;
  now_ = sender.deferred == 0 && sender.known.load(std::memory_order_relaxed) &&
         settled(sender, raise.signal->rank(), by, failed);
  return failed;
}

void RaiseTurn::made() {
  sender().raised = total();
  sender().through = by_;
  lock_.unlock();
}

void RaiseTurn::store() {
  raise_.signal->word()->store(total(), std::memory_order_release);
  made();
  wake(*raise_.signal->sleepers());
}

}  // namespace pw
