// The lowering of sends and receives.
#include <algorithm>

#include "base/format.h"
#include "plan/lowering/lowering.h"

namespace pw {
namespace {

// The lane's words in this rank's mailbox; those in the partner's are Lowering::their_words().
uint64_t* own_words(const Negotiation& negotiation, const Lane& lane) {
  return reinterpret_cast<uint64_t*>(negotiation.mailbox()->address() + lane.offer.words);
}

// Whether this rank and that one both send to each other in each epoch. Then a message from the rank shows
// that it has finished its previous epoch, and so has emptied the slot that was filled then: no credit is
// needed.
bool in_step_with(const Negotiation& negotiation, int rank) {
  const auto with = [rank](const Lane& lane) { return lane.rank == rank; };
  return std::ranges::any_of(negotiation.sends(), with) && std::ranges::any_of(negotiation.receives(), with);
}

}  // namespace

Layout straight_layout(const Lane& lane) {
  return join(lane.theirs.block, lane.target->bytes(), "remote region", lane.block, lane.region->bytes(),
              "local region");
}

void Lowering::add_lanes(const Negotiation& negotiation) {
  for (const Lane& lane : negotiation.sends()) describe(lane, true);
  for (const Lane& lane : negotiation.receives()) describe(lane, false);
  for (const Lane& lane : negotiation.sends()) add_send(negotiation, lane);
  for (const Lane& lane : negotiation.receives()) add_receive(negotiation, lane);
}

void Lowering::describe(const Lane& lane, bool sends) {
  add_description(format("{} {} bytes {} rank {}, tag {}: {}{}", sends ? "send" : "receive", lane.offer.bytes,
                         sends ? "to" : "from", lane.rank, lane.tag, method_name(lane.method),
                         lane.pieces > 1 ? format(", in {} pieces", lane.pieces) : ""));
}

uint64_t* Lowering::their_words(const Lane& lane) const {
  return reinterpret_cast<uint64_t*>(lane.mailbox->address_on(device_) + lane.theirs.words);
}

// A send waits until it may write. Through slots: a slot is used every second epoch, so the receiver must
// have emptied it in the epoch before last. Straight: the receiver must have started the same epoch.
void Lowering::add_send(const Negotiation& negotiation, const Lane& lane) {
  if (lane.method == SendMethod::posted) return post_send(lane);
  ProgramStep step;
  step.rank = lane.rank;
  step.trace_kind = PW_TRACE_PUT;
  step.method = method_text(through_slots(lane.method) ? "plan slots" : "plan straight");
  step.from = lane.region->address() + lane.block.offset;
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit();
  step.wait = {own_words(negotiation, lane), 0, 1, through_slots(lane.method) ? uint64_t{2} : 0, lane.pieces};
  step.stored_words = {their_words(lane), 0, 1, 0, lane.pieces};
  if (through_slots(lane.method)) {
    step.to = lane.slots->address_on(device_) + lane.slots_at;
    step.to_odd_offset = static_cast<int64_t>(lane.slot_bytes);
    if (in_step_with(negotiation, lane.rank)) step.wait = {};
    if (!on_host()) {
      step.kind = lane.method == SendMethod::lines ? StepKind::send_lines : StepKind::send_packets;
      step.stored_words = {};
    }
  } else {
    step.to = lane.target->address_on(device_) + lane.theirs.block.offset;
    step.layout = straight_layout(lane);
    step.reads_source_early = true;
    if (negotiation.is_own(lane)) step.wait = {};
  }
  steps_of(lane.round, true).push_back(step);
}

void Lowering::add_receive(const Negotiation& negotiation, const Lane& lane) {
  if (lane.method == SendMethod::posted) return post_receive(lane);
  ProgramStep step;
  step.rank = lane.rank;
  if (lane.method == SendMethod::straight) {
    // A place of a later round is free from the start on, too.
    step.kind = StepKind::ready;
    step.stored_words = {their_words(lane), 0, 1, 0, lane.pieces};
    if (!negotiation.is_own(lane)) plan_.program.start.insert(plan_.program.start.begin(), step);
    step.kind = StepKind::wait;
    step.stored_words = {};
    step.wait = {own_words(negotiation, lane), 0, 1, 0, lane.pieces};
    steps_of(lane.round, false).push_back(step);
    return;
  }
  step.to = lane.region->address() + lane.block.offset;
  step.from = negotiation.slots_of(lane).address() + lane.slots_at;
  step.from_odd_offset = static_cast<int64_t>(lane.slot_bytes);
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit();
  if (!in_step_with(negotiation, lane.rank)) step.stored_words = {their_words(lane), 0, 1, 0, lane.pieces};
  if (on_host())
    step.wait = {own_words(negotiation, lane), 0, 1, 0, lane.pieces};
  else
    step.kind = lane.method == SendMethod::lines ? StepKind::receive_lines : StepKind::receive_packets;
  steps_of(lane.round, false).push_back(step);
}

}  // namespace pw
