#include "plan/plan.h"

#include <algorithm>
#include <atomic>

#include "base/format.h"
#include "base/status.h"
#include "plan/run/guard.h"
#include "team/wait.h"

namespace pw {

Plan::Plan(Context& context, Device& device)
    : context_(context),
      device_(device),
      operations_(context.team(), device),
      timeout_ns_(settings::plan_timeout.nanoseconds()) {}

Plan::~Plan() {
  // Ends the waits of work that is still under way on a stream. The runner, which is destroyed after this,
  // can then wait for that work before the memory that it uses goes away.
  if (lowered_.program.guard != nullptr) cancel(*lowered_.program.guard, PW_CLOSED, -1);
  exchange_.reset();
  on_loss_.reset();
  on_close_.reset();
  if (served_ != nullptr) proxy_->forget(*served_);
  for (const PlannedWait& wait : operations_.waits())
    if (runner_ != nullptr) wait.signal->planned += runner_->epochs(PlanPart::finish) * wait.by;
  const uint64_t starts = runner_ == nullptr ? 0 : runner_->epochs(PlanPart::start);
  for (const OwnedSignal& owned : lowered_.owned) {
    Remote& signal = *owned.notification.signal;
    if (owned.by_device) signal.sender()->notified += starts * owned.notification.by;
    Notifications::give_back(signal);
  }
}

PlanOperations& Plan::operations() {
  if (runner_ != nullptr)
    throw Error(PW_INVALID_ARGUMENT, "this plan is prepared and cannot be changed; make another one");
  return operations_;
}

void Plan::set_timeout(uint64_t timeout_ns) {
  timeout_ns_ = timeout_ns;
  if (lowered_.program.guard != nullptr)
    std::atomic_ref(lowered_.program.guard->timeout_ns).store(timeout_ns, std::memory_order_relaxed);
}

void Plan::leave_room(bool yes) {
  if (runner_ != nullptr) runner_->leave_room(yes);
}

void Plan::prepare(bool alone) {
  if (!alone) {
    keep_exchange(
        run_exchange(context_.team(), CallKind::plan, [&](Exchange& exchange) { prepare_in(exchange); }));
    return;
  }
  const size_t sends = operations_.sends().size(), receives = operations_.receives().size();
  if (sends + receives > 0)
    throw Error(PW_INVALID_ARGUMENT,
                format("a plan with {} sends and {} receives cannot be prepared alone", sends, receives));
  begin_program();
  end_program();
}

void Plan::prepare_among(std::span<const int> ranks) {
  constexpr const char* kAction = "a plan is to be prepared";
  check_group(context_.team(), ranks, kAction);
  constexpr auto kind = CallKind::plan_among;
  keep_exchange(run_exchange(
      context_.team(), context_.team().begin_exchange_among(kind, ranks), kind, [&](Exchange& exchange) {
        for (const int rank : operations_.partners())
          if (std::ranges::find(ranks, rank) == ranks.end())
            throw Error(PW_INVALID_ARGUMENT,
                        format("{} among {} ranks without rank {}, which it has a send or receive with",
                               kAction, ranks.size(), rank));
        prepare_in(exchange);
      }));
}

// If this throws, the caller aborts the exchange at all ranks.
void Plan::prepare_in(Exchange& exchange) {
  begin_program();
  negotiation_->negotiate(exchange);
  Lowering(context_, device_, lowered_).add_lanes(*negotiation_);
  end_program();
  negotiation_->confirm(exchange);
}

// This rank is prepared once its own partners are. A rank that is no partner may still abort the exchange
// then, even after this plan was started; that cancels the plan.
void Plan::keep_exchange(std::unique_ptr<Exchange> exchange) {
  exchange_ = std::move(exchange);
  exchange_->on_abort([guard = lowered_.program.guard, waiting = lowered_.program.waiting](const Error& why) {
    cancel(*guard, why.status(), std::string(why.what()));
    waiting->wake();
  });
}

void Plan::begin_program() {
  static_cast<void>(operations());  // throws if the plan is prepared
  if (context_.closed())
    throw Error(PW_CLOSED, "the context of this plan was closed before the plan was prepared");
  if (lowered_.program.guard != nullptr)
    throw Error(PW_INVALID_ARGUMENT,
                "an earlier prepare of this plan failed; create another builder and add its "
                "operations again");
  for (const PlannedMove& move : operations_.moves())
    refuse_lost(context_.team(), move.transfer.remote->rank());
  for (const Notification& notification : operations_.notifications())
    refuse_lost(context_.team(), notification.signal->rank());
  lowered_.program.guard = make_guard(context_, device_, timeout_ns_);
  lowered_.program.waiting = context_.waiting();
  negotiation_.emplace(context_, device_, operations_);
  Lowering(context_, device_, lowered_).add_operations(operations_);
}

void Plan::end_program() {
  Lowering(context_, device_, lowered_).complete();
  runner_ = device_.make_runner(lowered_.program);
  cancel_on_losses();
  serve_by_proxy();
}

void Plan::cancel_on_losses() {
  const std::shared_ptr<Guard> guard = lowered_.program.guard;
  const std::shared_ptr<const Waiting> waiting = lowered_.program.waiting;
  on_close_ = context_.on_close([guard, waiting] {
    cancel(*guard, PW_CLOSED, -1);
    waiting->wake();
  });
  on_loss_ = context_.team().on_loss([guard, waiting, dependencies = operations_.dependencies()](int rank) {
    if (!dependencies.contains(PW_ANY_RANK) && !dependencies.contains(rank)) return;
    cancel(*guard, PW_PEER_LOST, rank);
    waiting->wake();
  });
}

void Plan::serve_by_proxy() {
  if (lowered_.posted.empty()) return;
  proxy_ = Proxy::of(context_);
  served_ = std::make_shared<PostedPlan>(context_, std::move(lowered_.posted), lowered_.program.guard);
  proxy_->serve(served_);
}

}  // namespace pw
