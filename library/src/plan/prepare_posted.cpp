// The posted part of Plan::prepare: what the proxy does at each start, and the signals by which the
// two ends of a posted lane tell one another how far they are.
//
// The receiver notifies the sender's signal when its plan has started ("ready to receive"), the sender's
// proxy then starts the transfer, and the path notifies the receiver's signal behind the data ("arrived").
#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "plan/plan.h"

namespace pw {

void Plan::open_signals() {
  for (auto* lanes : {&sends_, &receives_})
    for (Lane& lane : *lanes)
      if (lane.kind == LaneKind::posted)
        lane.signal = signals_.emplace_back(std::make_unique<Signal>(context_, lane.offer.rank)).get();
}

void Plan::post(const PostedOperation& operation) {
  if (operation.transfer) context_.prepare(*operation.transfer);
  if (operation.notification && operation.notification->signal->is_device_signal())
    throw Error(PW_UNSUPPORTED,
                format("the proxy cannot notify a signal of rank {} in GPU memory; make that signal "
                       "on the host",
                       operation.rank));
  if (operation.notification && operation.notification->signal->word() == nullptr)
    static_cast<void>(context_.resolver().far_notifier(*operation.notification->signal));
  posted_.push_back(operation);
}

Notification Plan::posted(const Notification& notification) {
  reserve_signal(notification, false);
  return {notification.signal, notification.by, true};
}

void Plan::post_send(const Lane& lane) {
  uint32_t count = 0;
  const GrowingWords ready_to_receive{lane.signal->words_on(host_device(), count), 0, 1, 0, 1};
  const Transfer transfer{Op::put,           lane.target,
                          lane.region.get(), lane.theirs.block.offset,
                          lane.block.offset, straight_layout(lane)};
  post({lane.offer.rank, transfer, Notification{lane.far_signal, 1}, ready_to_receive});
}

void Plan::post_receive(const Lane& lane) {
  post({lane.offer.rank, {}, Notification{lane.far_signal, 1}, {}});
  uint32_t count = 0;
  program_.finish.push_back({.kind = StepKind::wait,
                             .rank = lane.offer.rank,
                             .layout = {},
                             .wait = {lane.signal->words_on(device_, count), 0, 1, 0, 1},
                             .mark = {}});
}

// The start tells the proxy its epoch before it does anything else, and the finish waits until the
// proxy is through it.
void Plan::add_trigger() {
  if (posted_.empty()) return;
  Guard& guard = *program_.guard;
  program_.start.insert(program_.start.begin(),
                        {.kind = StepKind::notify,
                         .layout = {},
                         .wait = {},
                         .mark = {reinterpret_cast<uint64_t*>(&guard.trigger), 0, 1, 0, 1}});
  program_.finish.push_back({.kind = StepKind::wait,
                             .layout = {},
                             .wait = {reinterpret_cast<uint64_t*>(&guard.done), 0, 1, 0, 1},
                             .mark = {}});
}

void Plan::serve() {
  if (posted_.empty()) return;
  proxy_ = Proxy::of(context_);
  served_ = std::make_shared<PostedPlan>(context_, std::move(posted_), program_.guard);
  proxy_->serve(served_);
}

}  // namespace pw
