#include "plan/run/posted.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/format.h"
#include "plan/run/guard.h"

namespace pw {
namespace {

bool reached(const GrowingWords& words, uint64_t epoch) {
  if (words.word == nullptr) return true;
  for (uint32_t w = 0; w < words.count; ++w)
    if (std::atomic_ref(words.word[w]).load(std::memory_order_acquire) < words.in(epoch)) return false;
  return true;
}

}  // namespace

std::vector<uint32_t> rounds_of(const std::vector<PostedOperation>& operations) {
  std::set<uint32_t> rounds;
  for (const PostedOperation& operation : operations) rounds.insert(operation.round);
  return {rounds.begin(), rounds.end()};
}

PostedPlan::PostedPlan(Context& context, std::vector<PostedOperation> operations,
                       std::shared_ptr<Guard> guard)
    : context_(context),
      operations_(std::move(operations)),
      rounds_(rounds_of(operations_)),
      guard_(std::move(guard)) {
  for (const PostedOperation& operation : operations_)
    if (operation.transfer) {
      bytes_ += operation.transfer->layout.shape.bytes();
      if (std::ranges::find(ranks_, operation.rank) == ranks_.end()) ranks_.push_back(operation.rank);
    }
  // Operations without a transfer come first. They tell other ranks that this one is ready to receive, so
  // those need not wait until this rank has started its own transfers.
  std::stable_partition(operations_.begin(), operations_.end(),
                        [](const auto& operation) { return !operation.transfer; });
}

bool PostedPlan::triggered() const { return guard_->trigger.load(std::memory_order_acquire) > turn_; }

Poll PostedPlan::poll() {
  if (cancelled(*guard_)) return Poll::idle;
  bool progress = false;
  if (!busy_) {
    if (!triggered()) return Poll::idle;
    ++turn_;
    busy_ = progress = true;
    trace_began_ = trace::recording() ? trace::now() : 0;
    for (size_t i = 0; i < operations_.size(); ++i)
      if (operations_[i].round == round()) open_.push_back(i);
  }
  progress |= begin_open();
  if (open_.empty() && !cancelled(*guard_)) progress |= complete();
  return progress ? Poll::progress : Poll::waiting;
}

// Begins the open operations whose words have their value, in any order: an operation must not be held up by
// one before it, because another rank may be waiting for it.
bool PostedPlan::begin_open() {
  bool progress = false;
  for (size_t i = 0; i < open_.size();) {
    const PostedOperation& operation = operations_[open_[i]];
    if (!reached(operation.wait, epoch())) {
      ++i;
      continue;
    }
    const Notification* notification = operation.notification ? &*operation.notification : nullptr;
    // An exception is handled like a status.
    const pw_status begun = pw::catch_errors([&] {
      return operation.transfer ? context_.start(*operation.transfer, notification)
                                : context_.notify_at_once(*notification);
    });
    if (!ok_or_cancel(operation.rank, begun)) return progress;
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    progress = true;
  }
  guard_->awaited.store(open_.empty() ? 0 : operations_[open_.front()].rank + 1, std::memory_order_relaxed);
  return progress;
}

// Called when all operations of the turn have begun: reports the turn as done once they are complete. After
// that the program may change the sources of puts and use the targets of gets. This does not wait either:
// while one rank stands still, the operations of other plans must go on.
bool PostedPlan::complete() {
  if (!marked_) {
    for (const int rank : ranks_) context_.add_marks(rank, marks_);
    deadline_ns_ = deadline_after(std::atomic_ref(guard_->timeout_ns).load(std::memory_order_relaxed));
    marked_ = true;
  }
  const int rank = marks_.rank();
  if (!marks_.reached() && now_ns() < deadline_ns_) return false;
  busy_ = marked_ = false;
  if (!ok_or_cancel(std::max(rank, 0), pw::catch_errors([&] { return completion(); }))) return true;
  if (trace::recording())
    trace::add({PW_TRACE_PROXY, "proxy", ranks_.size() == 1 ? "" : "several ranks", trace_began_,
                ranks_.size() == 1 ? ranks_.front() : -1, bytes_});
  guard_->done.store(turn_, std::memory_order_release);
  context_.waiting()->wake();  // a stream of the host may sleep
  return true;
}

pw_status PostedPlan::completion() {
  if (marks_.reached()) return marks_.outcome();
  return fail(PW_TIMEOUT,
              format("the transfers of a plan with rank {} were not complete in time", marks_.rank()));
}

bool PostedPlan::ok_or_cancel(int rank, pw_status status) {
  if (status == PW_OK) return true;
  if (context_.team().lost(rank))
    pw::cancel(*guard_, PW_PEER_LOST, rank);
  else if (context_.closed())
    pw::cancel(*guard_, PW_CLOSED, -1);
  else
    cancel(status, last_error_message());
  return false;
}

void PostedPlan::cancel(pw_status why, const std::string& message) {
  pw::cancel(*guard_, why, message);
  context_.waiting()->wake();
}

}  // namespace pw
