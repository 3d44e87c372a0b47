// Plan::prepare: among which ranks, and how a plan becomes a program that its device runs.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "plan/plan.h"
#include "team/wait.h"

namespace pw {

void Plan::prepare(bool alone) {
  if (!alone) {
    keep_exchange(
        run_exchange(context_.team(), Collective::plan, [&](Exchange& exchange) { prepare_in(exchange); }));
    return;
  }
  if (!(sends_.empty() && receives_.empty()))
    throw Error(PW_INVALID_ARGUMENT, format("a plan with {} sends and {} receives cannot be prepared alone",
                                            sends_.size(), receives_.size()));
  begin_program();
  end_program();
}

void Plan::prepare_among(std::span<const int> ranks) {
  const Team& team = context_.team();
  const auto has = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
  const auto refuse = [&](const std::string& problem) {
    throw Error(PW_INVALID_ARGUMENT,
                format("a plan is to be prepared among {} ranks {}", ranks.size(), problem));
  };
  // A wrong list is refused here. No other rank can be in an exchange of such a list.
  if (!has(team.rank())) refuse(format("without rank {}, which prepares it", team.rank()));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= team.size())
      refuse(format("with rank {}; the team has ranks 0 to {}", rank, team.size() - 1));
    if (std::ranges::count(ranks, rank) > 1) refuse(format("with rank {} twice", rank));
  }
  constexpr auto kind = Collective::plan_among;
  keep_exchange(run_exchange(
      context_.team(), context_.team().begin_exchange_among(kind, ranks), kind, [&](Exchange& exchange) {
        for (const int rank : partners())
          if (!has(rank)) refuse(format("without rank {}, which it has a send or receive with", rank));
        prepare_in(exchange);
      }));
}

// An exception of this function ends the exchange at all ranks. The last round tells the partners that this
// rank is ready: from then on their starts may write to it.
void Plan::prepare_in(Exchange& exchange) {
  begin_program();
  join_lanes(exchange);
  end_program();
  exchange_with_partners(exchange, [](int) { return Bytes(); });
}

// An abort of a rank further away may come when this plan is prepared and even started.
void Plan::keep_exchange(std::unique_ptr<Exchange> exchange) {
  exchange_ = std::move(exchange);
  exchange_->on_abort([guard = program_.guard, waiting = program_.waiting](const Error& why) {
    cancel(*guard, why.status(), std::string(why.what()));
    waiting->wake();
  });
}

void Plan::guard_losses() {
  const std::shared_ptr<Guard> guard = program_.guard;
  const std::shared_ptr<const Waiting> waiting = program_.waiting;
  on_close_ = context_.on_close([guard, waiting] {
    cancel(*guard, PW_CLOSED, -1);
    waiting->wake();
  });
  on_loss_ = context_.team().on_loss([guard, waiting, dependencies = dependencies_](int rank) {
    if (!dependencies.contains(PW_ANY_RANK) && !dependencies.contains(rank)) return;
    cancel(*guard, PW_PEER_LOST, rank);
    waiting->wake();
  });
}

void Plan::begin_program() {
  require_unprepared();
  if (context_.closed())
    throw Error(PW_CLOSED, "the context of this plan was closed before the plan was prepared");
  if (program_.guard != nullptr)
    throw Error(PW_INVALID_ARGUMENT,
                "an earlier prepare of this plan failed; create another builder and add its "
                "operations again");
  for (const Move& move : moves_) refuse_lost(context_.team(), move.transfer.remote->rank());
  for (const Notification& notification : notifications_)
    refuse_lost(context_.team(), notification.signal->rank());
  program_.guard = make_guard(device_, context_.words(device_), timeout_ns_);
  program_.waiting = context_.waiting();
  open_mailbox();
  add_signals();
  add_moves();
}

void Plan::end_program() {
  if (device_kind() == PW_HOST) add_wakes();
  add_trigger();
  runner_ = device_.make_runner(program_);
  guard_losses();
  serve();
}

}  // namespace pw
