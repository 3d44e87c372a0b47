// The lowering of what the proxy does at each start. The two ends of a posted lane tell one another by
// signals how far they are.
//
// The receiver notifies the sender's signal when its plan has started ("ready to receive"), the sender's
// proxy then starts the transfer, and the path notifies the receiver's signal behind the data ("arrived").
#include "base/format.h"
#include "base/status.h"
#include "plan/lowering/lowering.h"

namespace pw {

void Lowering::post(const PostedOperation& operation) {
  if (operation.transfer) context_.prepare(*operation.transfer);
  if (operation.notification && operation.notification->signal->is_device_signal())
    throw Error(PW_UNSUPPORTED,
                format("the proxy cannot notify a signal of rank {} in GPU memory; make that signal "
                       "on the host",
                       operation.rank));
  if (operation.notification && operation.notification->signal->word() == nullptr)
    static_cast<void>(context_.resolver().far_notifier(*operation.notification->signal));
  plan_.posted.push_back(operation);
}

Notification Lowering::posted(const Notification& notification) {
  reserve_signal(notification, false);
  return {notification.signal, notification.by, true};
}

void Lowering::post_send(const Lane& lane) {
  uint32_t count = 0;
  const GrowingWords ready_to_receive{lane.signal->words_on(host_device(), count), 0, 1, 0, 1};
  const Transfer transfer{Op::put,           lane.target,
                          lane.region.get(), lane.theirs.block.offset,
                          lane.block.offset, straight_layout(lane)};
  post({lane.rank, transfer, Notification{lane.far_signal, 1}, ready_to_receive, lane.round});
}

void Lowering::post_receive(const Lane& lane) {
  post({lane.rank, {}, Notification{lane.far_signal, 1}, {}, lane.round});
  uint32_t count = 0;
  steps_of(lane.round, false)
      .push_back({.kind = StepKind::wait,
                  .rank = lane.rank,
                  .layout = {},
                  .wait = {lane.signal->words_on(device_, count), 0, 1, 0, 1},
                  .stored_words = {}});
}

// Each round that has operations of the proxy is a turn. Its first step tells the proxy the number of the
// turn, and its last step waits until the proxy has done the operations of that turn. Round 0 begins with the
// start and ends with the finish.
void Lowering::add_triggers() {
  const std::vector<uint32_t> rounds = rounds_of(plan_.posted);
  Guard& guard = *plan_.program.guard;
  for (size_t turn = 0; turn < rounds.size(); ++turn) {
    // In epoch e it is turn number (e - 1) * rounds.size() + turn + 1.
    const auto words = [&](std::atomic<uint64_t>& word) {
      return GrowingWords{reinterpret_cast<uint64_t*>(&word), turn + 1 - rounds.size(), rounds.size(), 0, 1};
    };
    std::vector<ProgramStep>& first = steps_of(rounds[turn], true);
    first.insert(first.begin(),
                 {.kind = StepKind::notify, .layout = {}, .wait = {}, .stored_words = words(guard.trigger)});
    steps_of(rounds[turn], false)
        .push_back({.kind = StepKind::wait, .layout = {}, .wait = words(guard.done), .stored_words = {}});
  }
}

// When a step of the CPU stores a mark in memory of another rank, it also wakes the threads of that rank that
// sleep.
void Lowering::add_wakes() {
  const auto add = [&](std::vector<ProgramStep>& steps) {
    for (ProgramStep& step : steps)
      if (step.stored_words.word != nullptr)
        step.sleepers_to_wake = &context_.importer().control(step.rank)->sleepers;
  };
  add(plan_.program.start);
  add(plan_.program.finish);
  for (ProgramRound& round : plan_.program.rounds) add(round.steps);
}

}  // namespace pw
