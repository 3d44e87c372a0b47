// The lowering of puts, gets, notifications and waits.
#include "base/format.h"
#include "base/status.h"
#include "plan/lowering/lowering.h"

namespace pw {

void Lowering::add_operations(const PlanOperations& operations) {
  if (!operations.title().empty()) add_description(operations.title());
  plan_.program.rounds.resize(operations.rounds());
  add_reductions(operations);
  add_signals(operations);
  add_moves(operations);
}

void Lowering::add_reductions(const PlanOperations& operations) {
  for (const PlannedReduction& planned : operations.reductions())
    plan_.program.rounds.at(planned.round - 1).reduction = planned.reduction;
}

void Lowering::add_signals(const PlanOperations& operations) {
  for (const Notification& notification : operations.notifications())
    if (notification.signal->word() == nullptr && !notification.signal->is_device_signal())
      post({notification.signal->rank(), {}, posted(notification), {}});
    else
      plan_.program.start.push_back({.kind = StepKind::notify,
                                     .rank = notification.signal->rank(),
                                     .layout = {},
                                     .wait = {},
                                     .stored_words = words_of(notification),
                                     .notified = trace::tag_of(notification.signal->key)});
  for (const PlannedWait& wait : operations.waits())
    plan_.program.finish.push_back({.kind = StepKind::wait,
                                    .rank = wait.signal->sender(),
                                    .layout = {},
                                    .wait = words_of(wait),
                                    .stored_words = {},
                                    .awaited = wait.signal->trace_tag()});
}

// The words of the `after` that a move waits for: the one whose signal is notified by the rank of the move.
// Sets its entry in `used`. No words if there is none.
GrowingWords Lowering::wait_of(const PlannedMove& move, const std::vector<PlannedWait>& afters,
                               std::vector<bool>& used) {
  GrowingWords wait;
  const int rank = move.transfer.remote->rank();
  for (size_t a = 0; a < afters.size(); ++a) {
    if (afters[a].signal->sender() != rank) continue;
    if (wait.word != nullptr)
      throw Error(
          PW_INVALID_ARGUMENT,
          format("a put or get with rank {} waits for two signals of that rank (after); use one", rank));
    wait = words_of(afters[a]);
    used[a] = true;
  }
  if (move.notification && move.notification->signal->rank() != rank)
    throw Error(PW_INVALID_ARGUMENT,
                format("a plan's put to rank {} cannot notify a signal of rank {}; only one of the same rank",
                       rank, move.notification->signal->rank()));
  return wait;
}

void Lowering::add_move(const PlannedMove& move, const GrowingWords& wait, uint64_t of_all) {
  const Transfer& transfer = move.transfer;
  Remote& remote = *transfer.remote;
  const Copy copy = copy_between(transfer, transfer.local->address() + transfer.local_offset,
                                 remote.address_on(device_) + transfer.remote_offset);
  ProgramStep step;
  step.rank = remote.rank();
  step.to = copy.to;
  step.from = copy.from;
  step.layout = copy.layout;
  if (!on_host()) step.pieces = straight_pieces(transfer.layout.shape.bytes(), of_all);
  step.wait = wait;
  step.trace_kind = transfer.op == Op::get ? PW_TRACE_GET : PW_TRACE_PUT;
  step.method = method_text("plan");
  if (move.notification) {
    step.stored_words = words_of(*move.notification);
    step.notified = trace::tag_of(move.notification->signal->key);
  }
  plan_.program.start.push_back(step);
}

void Lowering::add_moves(const PlanOperations& operations) {
  const std::vector<PlannedWait>& afters = operations.afters();
  std::vector<bool> used(afters.size());
  const auto is_mapped = [&](const PlannedMove& move) {
    return context_.reaches(device_, *move.transfer.remote);
  };
  uint64_t straight = 0;
  for (const PlannedMove& move : operations.moves())
    if (is_mapped(move)) straight += move.transfer.layout.shape.bytes();
  for (const PlannedMove& move : operations.moves()) {
    const Transfer& transfer = move.transfer;
    const int rank = transfer.remote->rank();
    const bool mapped = is_mapped(move);
    const GrowingWords wait = wait_of(move, afters, used);
    if (mapped)
      add_move(move, wait, straight);
    else
      post({rank, transfer, move.notification ? std::optional(posted(*move.notification)) : std::nullopt,
            wait});
    const bool puts = transfer.op == Op::put;
    add_description(format("{} {} bytes {} rank {}: {}", puts ? "put" : "get", transfer.layout.shape.bytes(),
                           puts ? "to" : "from", rank,
                           method_name(mapped ? SendMethod::straight : SendMethod::posted)));
  }
  for (size_t a = 0; a < afters.size(); ++a)
    if (!used[a])
      plan_.program.start.push_back({.kind = StepKind::wait,
                                     .rank = afters[a].signal->sender(),
                                     .layout = {},
                                     .wait = words_of(afters[a]),
                                     .stored_words = {},
                                     .awaited = afters[a].signal->trace_tag()});
}

}  // namespace pw
