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
  post({lane.rank, transfer, Notification{lane.far_signal, 1}, ready_to_receive});
}

void Lowering::post_receive(const Lane& lane) {
  post({lane.rank, {}, Notification{lane.far_signal, 1}, {}});
  uint32_t count = 0;
  plan_.program.finish.push_back({.kind = StepKind::wait,
                                  .rank = lane.rank,
                                  .layout = {},
                                  .wait = {lane.signal->words_on(device_, count), 0, 1, 0, 1},
                                  .mark = {}});
}

// The first step of a start tells the proxy the epoch, and the last step of a finish waits until the proxy
// has done the operations of that epoch.
void Lowering::add_trigger() {
  if (plan_.posted.empty()) return;
  Guard& guard = *plan_.program.guard;
  plan_.program.start.insert(plan_.program.start.begin(),
                             {.kind = StepKind::notify,
                              .layout = {},
                              .wait = {},
                              .mark = {reinterpret_cast<uint64_t*>(&guard.trigger), 0, 1, 0, 1}});
  plan_.program.finish.push_back({.kind = StepKind::wait,
                                  .layout = {},
                                  .wait = {reinterpret_cast<uint64_t*>(&guard.done), 0, 1, 0, 1},
                                  .mark = {}});
}

// When a step of the CPU stores a mark in memory of another rank, it also wakes the threads of that rank that
// sleep.
void Lowering::add_wakes() {
  for (auto* steps : {&plan_.program.start, &plan_.program.finish})
    for (ProgramStep& step : *steps)
      if (step.mark.word != nullptr) step.woken = &context_.importer().control(step.rank)->sleepers;
}

}  // namespace pw
