// The program of a plan: the steps that its lanes, operations and signals become.
#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "plan/methods.h"
#include "plan/plan.h"

namespace pw {

uint64_t* Plan::own_words(const Lane& lane) const {
  return reinterpret_cast<uint64_t*>(mailbox_->address() + lane.offer.words);
}

uint64_t* Plan::their_words(const Lane& lane) const {
  return reinterpret_cast<uint64_t*>(lane.mailbox->address_on(device_) + lane.theirs.words);
}

// Whether what comes from the rank proves that it has used what it was sent the epoch before.
bool Plan::in_step_with(int rank) const {
  const auto with = [rank](const Lane& lane) { return lane.offer.rank == rank; };
  return std::ranges::any_of(sends_, with) && std::ranges::any_of(receives_, with);
}

Layout Plan::straight_layout(const Lane& lane) const {
  return join(lane.theirs.block, lane.target->bytes(), "remote region", lane.block, lane.region->bytes(),
              "local region");
}

std::string_view Plan::way_of(std::string_view step) {
  const std::string_view path =
      device_kind() == PW_HOST ? context_.resolver().copying_path() : std::string_view();
  return path.empty() ? step : std::string_view(*ways_.insert(format("{}, {}", step, path)).first);
}

// Slots may be filled again two epochs later, once the receiver has emptied them; the target of a straight
// lane once the receiver has started the same epoch.
void Plan::add_send(const Lane& lane) {
  if (lane.kind == LaneKind::posted) return post_send(lane);
  ProgramStep step;
  step.rank = lane.offer.rank;
  step.moves = PW_TRACE_PUT;
  step.way = way_of(through_slots(lane.kind) ? "plan slots" : "plan straight");
  step.from = lane.region->address() + lane.block.offset;
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit();
  step.wait = {own_words(lane), 0, 1, through_slots(lane.kind) ? uint64_t{2} : 0, lane.pieces};
  step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
  if (through_slots(lane.kind)) {
    step.to = lane.slots->address_on(device_) + lane.slots_at;
    step.to_odd_offset = static_cast<int64_t>(lane.slot_bytes);
    if (in_step_with(lane.offer.rank)) step.wait = {};
    if (device_kind() != PW_HOST) {
      step.kind = lane.kind == LaneKind::lines ? StepKind::send_lines : StepKind::send_packets;
      step.mark = {};
    }
  } else {
    step.to = lane.target->address_on(device_) + lane.theirs.block.offset;
    step.layout = straight_layout(lane);
    step.early = true;
    if (is_own(lane)) step.wait = {};
  }
  program_.start.push_back(step);
}

void Plan::add_receive(const Lane& lane) {
  if (lane.kind == LaneKind::posted) return post_receive(lane);
  ProgramStep step;
  step.rank = lane.offer.rank;
  if (lane.kind == LaneKind::straight) {
    step.kind = StepKind::ready;
    step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
    if (!is_own(lane)) program_.start.insert(program_.start.begin(), step);
    step.kind = StepKind::wait;
    step.mark = {};
    step.wait = {own_words(lane), 0, 1, 0, lane.pieces};
    program_.finish.push_back(step);
    return;
  }
  step.to = lane.region->address() + lane.block.offset;
  step.from = slots_->address() + lane.slots_at;
  step.from_odd_offset = static_cast<int64_t>(lane.slot_bytes);
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit();
  if (!in_step_with(lane.offer.rank)) step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
  if (device_kind() == PW_HOST)
    step.wait = {own_words(lane), 0, 1, 0, lane.pieces};
  else
    step.kind = lane.kind == LaneKind::lines ? StepKind::receive_lines : StepKind::receive_packets;
  program_.finish.push_back(step);
}

void Plan::reserve_signal(const Notification& notification, bool by_device) {
  context_.notifications().reserve(*notification.signal);
  owned_.push_back({notification, by_device});
}

GrowingWords Plan::words_of(const Notification& notification) {
  uint64_t* word = notification.signal->word_on(device_);
  reserve_signal(notification, true);
  return {word, notification.signal->sender()->notified, notification.by, 0, 1};
}

GrowingWords Plan::words_of(const Watch& watch) {
  uint32_t count = 0;
  uint64_t* words = watch.signal->words_on(device_, count);
  if (count != 1)
    throw Error(PW_INVALID_ARGUMENT,
                "a plan waits for signals of one sender; name it when the signal is made");
  return {words, watch.signal->planned, watch.by, watch.lead, 1};
}

void Plan::add_signals() {
  for (const Notification& notification : notifications_)
    if (notification.signal->word() == nullptr && !notification.signal->is_device_signal())
      post({notification.signal->rank(), {}, posted(notification), {}});
    else
      program_.start.push_back({.kind = StepKind::notify,
                                .rank = notification.signal->rank(),
                                .layout = {},
                                .wait = {},
                                .mark = words_of(notification),
                                .notified = trace::tag_of(notification.signal->key)});
  for (const Watch& wait : waits_)
    program_.finish.push_back({.kind = StepKind::wait,
                               .rank = wait.signal->sender(),
                               .layout = {},
                               .wait = words_of(wait),
                               .mark = {},
                               .awaited = wait.signal->trace_tag()});
}

// The after that a move waits for.
GrowingWords Plan::wait_of(const Move& move, std::vector<bool>& used) {
  GrowingWords wait;
  const int rank = move.transfer.remote->rank();
  for (size_t a = 0; a < afters_.size(); ++a) {
    if (afters_[a].signal->sender() != rank) continue;
    if (wait.word != nullptr)
      throw Error(
          PW_INVALID_ARGUMENT,
          format("a put or get with rank {} waits for two signals of that rank (after); use one", rank));
    wait = words_of(afters_[a]);
    used[a] = true;
  }
  if (move.notification && move.notification->signal->rank() != rank)
    throw Error(PW_INVALID_ARGUMENT,
                format("a plan's put to rank {} cannot notify a signal of rank {}; only one of the same rank",
                       rank, move.notification->signal->rank()));
  return wait;
}

void Plan::add_move(const Move& move, const GrowingWords& wait, uint64_t of_all) {
  const Transfer& transfer = move.transfer;
  Remote& remote = *transfer.remote;
  const Copy copy = copy_between(transfer, transfer.local->address() + transfer.local_offset,
                                 remote.address_on(device_) + transfer.remote_offset);
  ProgramStep step;
  step.rank = remote.rank();
  step.to = copy.to;
  step.from = copy.from;
  step.layout = copy.layout;
  if (device_kind() != PW_HOST) step.pieces = straight_pieces(transfer.layout.shape.bytes(), of_all);
  step.wait = wait;
  step.moves = transfer.op == Op::get ? PW_TRACE_GET : PW_TRACE_PUT;
  step.way = way_of("plan");
  if (move.notification) {
    step.mark = words_of(*move.notification);
    step.notified = trace::tag_of(move.notification->signal->key);
  }
  program_.start.push_back(step);
}

void Plan::add_moves() {
  std::vector<bool> used(afters_.size());
  const auto is_mapped = [&](const Move& move) { return context_.reaches(device_, *move.transfer.remote); };
  uint64_t straight = 0;
  for (const Move& move : moves_)
    if (is_mapped(move)) straight += move.transfer.layout.shape.bytes();
  for (const Move& move : moves_) {
    const Transfer& transfer = move.transfer;
    const int rank = transfer.remote->rank();
    const bool mapped = is_mapped(move);
    const GrowingWords wait = wait_of(move, used);
    if (mapped)
      add_move(move, wait, straight);
    else
      post({rank, transfer, move.notification ? std::optional(posted(*move.notification)) : std::nullopt,
            wait});
    const bool puts = transfer.op == Op::put;
    add_description(format("{} {} bytes {} rank {}: {}", puts ? "put" : "get", transfer.layout.shape.bytes(),
                           puts ? "to" : "from", rank,
                           name_of_method(mapped ? LaneKind::straight : LaneKind::posted, device_kind())));
  }
  for (size_t a = 0; a < afters_.size(); ++a)
    if (!used[a])
      program_.start.push_back({.kind = StepKind::wait,
                                .rank = afters_[a].signal->sender(),
                                .layout = {},
                                .wait = words_of(afters_[a]),
                                .mark = {},
                                .awaited = afters_[a].signal->trace_tag()});
}

// A mark of the CPU is followed by a check whether its owner sleeps.
void Plan::add_wakes() {
  for (auto* steps : {&program_.start, &program_.finish})
    for (ProgramStep& step : *steps)
      if (step.mark.word != nullptr) step.woken = &context_.importer().control(step.rank)->sleepers;
}

}  // namespace pw
