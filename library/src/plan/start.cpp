// What a prepared plan does: starts and finishes from the host and on streams, and handles for kernels.
#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "plan/negotiation/methods.h"
#include "plan/plan.h"
#include "plan/run/guard.h"
#include "team/wait.h"

namespace pw {

pw_status Plan::refuse_unprepared(const char* action) const {
  return fail(PW_INVALID_ARGUMENT, format("{} of a plan that is not prepared", action));
}

pw_status Plan::status() const {
  if (lowered_.program.guard == nullptr) return PW_OK;
  const Team& team = context_.team();
  if (!team.none_lost())
    for (const int rank : operations_.dependencies()) cancel_if_lost(*lowered_.program.guard, team, rank);
  return status_of(*lowered_.program.guard, team);
}

// A start must come after the finish of the start before. The lowering relies on this (in_step_with): a
// message from a rank shows that the rank has taken everything that was sent to it in earlier epochs.
pw_status Plan::enter_part(PlanPart part, std::optional<void*> stream, uint64_t* start_number) {
  std::lock_guard lock(mutex_);
  if (part != PlanPart::finish && started_ && !(in_kernels_ && stream_))
    return fail(PW_INVALID_ARGUMENT,
                format("this plan was started {} and is not finished; finish it before the next start",
                       stream_ ? "on a stream" : "from the host"));
  started_ = part == PlanPart::start;
  if (part == PlanPart::finish) return PW_OK;
  stream_ = stream;
  ++number_;  // also on a stream, so that a request for an earlier start does not finish this one
  if (start_number != nullptr) *start_number = number_;
  return PW_OK;
}

pw_status Plan::start(uint64_t* number) {
  if (runner_ == nullptr) return refuse_unprepared("a start");
  std::optional<trace::Operation> operation;
  if (trace::recording()) operation.emplace(PW_TRACE_PLAN_START, -1, operations_.sent_bytes());
  if (const pw_status cancelled = status(); cancelled != PW_OK) return cancelled;
  if (const pw_status noted = enter_part(PlanPart::start, std::nullopt, number); noted != PW_OK) return noted;
  return runner_->begin(PlanPart::start, std::nullopt);
}

// On the host the steps run in the polls of this thread, and the peer that makes the next step possible wakes
// it. A GPU wakes a thread only if it is asked to: then it calls Notice::give at the end.
Wakes Plan::request_notice(const std::shared_ptr<Notice>& notice) {
  if (device_.id().kind == PW_HOST) return Wakes::unless_unseen;
  void* user = Notice::hand_out(notice);
  if (runner_->notify(Notice::give, user)) return Wakes::always;
  Notice::take_back(user);
  return Wakes::perhaps;
}

// Call with the lock held.
pw_status Plan::begin_finish() {
  if (finishing_) return PW_OK;
  const pw_status begun = runner_->begin(PlanPart::finish, stream_);
  finishing_ = begun == PW_OK;
  return begun;
}

// If the start is not the last one, or was finished on a stream or by pw_plan_finish, nothing remains to do.
bool Plan::finished(uint64_t number, pw_status& ended) {
  std::lock_guard lock(mutex_);
  if (number != number_ || !started_) {
    ended = status();
    return true;
  }
  if (ended = begin_finish(); ended != PW_OK) return true;
  if (!runner_->done(ended)) return false;
  finishing_ = started_ = false;
  if (ended == PW_OK) ended = status();
  return true;
}

pw_status Plan::finish(uint64_t timeout_ns) {
  if (runner_ == nullptr) return refuse_unprepared("a finish");
  std::optional<trace::Operation> operation;
  if (trace::recording()) operation.emplace(PW_TRACE_PLAN_FINISH, -1, 0);
  const uint64_t deadline = deadline_after(timeout_ns);
  {
    std::lock_guard lock(mutex_);
    if (!started_) return fail(PW_INVALID_ARGUMENT, "a finish of a plan that was not started");
    if (const pw_status begun = begin_finish(); begun != PW_OK) return begun;
  }
  pw_status failed = PW_OK;
  // The wait names this rank itself, which is never lost: if a rank that the plan depends on is lost, the
  // plan is cancelled, and the runner ends.
  std::shared_ptr<Notice> notice;
  const pw_status waited = context_.progress().wait(
      {context_.team(), context_.team().rank(), deadline, "a plan"}, proxy_.get(),
      [&] { return (notice != nullptr && notice->given()) || runner_->done(failed); },
      [&] {
        notice = std::make_shared<Notice>(context_.waiting());
        return request_notice(notice);
      });
  if (waited == PW_TIMEOUT)
    return fail(PW_TIMEOUT,
                format("waited {:.3g} s for a plan of {} to finish. It goes on: finish it again, and "
                       "see whether the ranks at its other ends have started theirs",
                       static_cast<double>(timeout_ns) * 1e-9, to_string(device_.id())));
  if (waited != PW_OK) return waited;
  std::lock_guard lock(mutex_);
  finishing_ = started_ = false;
  return failed != PW_OK ? failed : status();
}

pw_status Plan::enter_on(void* stream, PlanPart part) {
  if (runner_ == nullptr) return refuse_unprepared("a start or finish");
  if (const pw_status cancelled = status(); cancelled != PW_OK) return cancelled;
  std::string why_not;
  if (!device_.owns_stream(stream, why_not))
    return fail(PW_INVALID_ARGUMENT,
                format("this stream cannot run a plan of {}: {}", to_string(device_.id()), why_not));
  return enter_part(part, stream, nullptr);
}

pw_status Plan::enqueue(void* stream, PlanPart part, const Condition& condition) {
  const pw_status entered = enter_on(stream, part);
  return entered == PW_OK ? runner_->enqueue(stream, part, condition) : entered;
}

pw_status Plan::enqueue_between(void* stream, const FlatCopy& before, const FlatCopy& after) {
  pw_status status = enter_on(stream, PlanPart::both);
  if (status == PW_OK) status = device_.copy_on(stream, before);
  if (status == PW_OK) status = runner_->enqueue(stream, PlanPart::both, {});
  return status == PW_OK ? device_.copy_on(stream, after) : status;
}

pw_status Plan::handle(pw_plan_handle& handle) {
  if (const pw_status status = give_to_kernels(handle); status != PW_OK) return status;
  if (operations_.rounds() > 0)
    return fail(PW_UNSUPPORTED,
                "this collective combines elements or moves them in several rounds, which a kernel cannot "
                "start; start it on a stream, or let the kernel combine the elements of an all-reduce "
                "(pw_plan_get_all_reduce_handle)");
  return PW_OK;
}

pw_status Plan::give_to_kernels(pw_plan_handle& handle) {
  if (runner_ == nullptr) return refuse_unprepared("a handle");
  std::lock_guard lock(mutex_);
  in_kernels_ = true;
  return runner_->handle(handle);
}

pw_status Plan::lane(bool sends, int rank, int tag, pw_lane_handle& handle) {
  pw_plan_handle whole{};
  if (const pw_status status = give_to_kernels(whole); status != PW_OK) return status;
  const std::vector<Lane>& lanes = sends ? negotiation_->sends() : negotiation_->receives();
  const auto match =
      std::ranges::find_if(lanes, [&](const Lane& lane) { return lane.rank == rank && lane.tag == tag; });
  if (match == lanes.end())
    return fail(PW_INVALID_ARGUMENT,
                format("this plan has no {} with rank {} and tag {}", sends ? "send" : "receive", rank, tag));
  const std::string message = format("{} bytes with rank {} and tag {}", match->offer.bytes, rank, tag);
  if (!through_slots(match->method))
    return fail(PW_UNSUPPORTED,
                format("{} go by {}; a kernel needs plan/packets or plan/lines: let the sender use only "
                       "those before it prepares its plan (pw_context_use or PEERWAY_PATHS)",
                       message, name_of_method(match->method, static_cast<uint8_t>(device_.id().kind))));
  if (match->unit() < 4)
    return fail(PW_UNSUPPORTED,
                format("{} go in words of {} bytes; a kernel needs words of 4 or 8: align the memory, "
                       "sizes and strides of both ends to that",
                       message, match->unit()));
  std::byte* slots = (sends ? match->slots->address_on(device_) : negotiation_->slots_of(*match).address()) +
                     match->slots_at;
  handle = {PW_HANDLE_VERSION, match->unit(), reinterpret_cast<unsigned char*>(slots),
            match->slot_bytes, rank,          whole.guard};
  return PW_OK;
}

}  // namespace pw
