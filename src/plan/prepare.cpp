// Plan::prepare: what ranks tell one another, which way each lane goes, and the program that follows from it.
#include <algorithm>
#include <map>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "plan/plan.h"

namespace pw {
namespace {

constexpr uint64_t kLine = 128;  // bytes: what belongs to one lane shares no cache line with another's

/// What every rank tells, unless one of them refuses to go on: then all throw Error with its reason.
std::vector<Bytes> agree(Team& team, const std::string& refusal, const Bytes& mine) {
  ByteWriter to;
  to.put_text(refusal);
  to.put(ByteView(mine));
  std::vector<Bytes> told = team.all_gather_parts(to.take(), config_number("timeout"));
  if (!refusal.empty()) throw Error(PW_INVALID_ARGUMENT, refusal);
  for (size_t rank = 0; rank < told.size(); ++rank) {
    ByteReader from(told[rank], "a rank's part of a plan");
    const std::string why = from.get_text(1 << 16);
    if (!why.empty())
      throw Error(PW_INVALID_ARGUMENT, format("peerway: rank {} cannot prepare its plan: {}", rank, why));
    const ByteView rest = from.rest();
    told[rank] = Bytes(rest.begin(), rest.end());
  }
  return told;
}

/// Whether the device reaches the remote, which this maps for it. Where the program restricts the paths to
/// others, memory of other ranks counts as out of reach.
bool reaches(Context& context, Device& device, Remote& remote) {
  std::string why_not;
  if (remote.rank() != context.team().rank() && !context.resolver().uses_mappings()) return false;
  if (!remote.same_host() || !device.reaches(remote.key.exported, why_not)) return false;
  try {
    remote.address_on(device);
    return true;
  } catch (const Error&) {
    return false;
  }
}

const char* text_of(LaneKind kind, uint8_t device_kind) {
  if (kind == LaneKind::straight) return "straight";
  if (kind == LaneKind::posted) return "by the proxy thread";
  return device_kind == PW_HOST ? "through slots" : "by packets";
}

}  // namespace

uint8_t Plan::device_kind() const { return static_cast<uint8_t>(device_.id().kind); }

void Plan::open_mailbox() {
  uint64_t bytes = 0;
  const auto take = [&](uint64_t wanted) {
    const uint64_t at = bytes;
    bytes += (wanted + kLine - 1) / kLine * kLine;
    return at;
  };
  for (Lane& lane : sends_) lane.offer.words = take(kMostPieces * sizeof(uint64_t));
  for (Lane& lane : receives_) {
    lane.offer.words = take(kMostPieces * sizeof(uint64_t));
    lane.offer.slot_bytes = slot_bytes(device_kind(), lane.offer.bytes, lane.offer.unit);
    lane.offer.slots = take(2 * lane.offer.slot_bytes);
  }
  if (bytes == 0) return;
  mailbox_ = context_.allocate({device_.id().kind, device_.id().index}, bytes);
  device_.clear(mailbox_->address(), bytes);
}

PlanOffer Plan::offer() {
  PlanOffer offer;
  offer.device_kind = device_kind();
  if (mailbox_ != nullptr) offer.mailbox = context_.key_of(*mailbox_);
  for (const Lane& lane : sends_) offer.sends.push_back(lane.offer);
  std::vector<const Region*> known;
  for (Lane& lane : receives_) {
    const auto found = std::ranges::find(known, lane.region.get());
    lane.offer.region = static_cast<uint32_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(lane.region.get());
      offer.regions.push_back(context_.key_of(*lane.region));
    }
    offer.receives.push_back(lane.offer);
  }
  return offer;
}

void Plan::find_partners(const std::vector<PlanOffer>& offers) {
  std::map<int, Remote*> mailboxes;
  const auto meet = [&](Lane& lane, bool sends) {
    const PlanOffer& theirs = offers[static_cast<size_t>(lane.offer.rank)];
    const std::vector<LaneOffer>& side = sends ? theirs.receives : theirs.sends;
    const LaneOffer& found = partner(lane.offer, context_.team().rank(), side, sends);
    if (theirs.device_kind != device_kind())
      throw Error(PW_UNSUPPORTED,
                  format("peerway: tag {}: this rank's plan is on {}, that of rank {} on another "
                         "kind of device",
                         lane.offer.tag, to_string(device_.id()), lane.offer.rank));
    lane.theirs = found;
    lane.place = static_cast<size_t>(&found - side.data()) + (sends ? theirs.sends.size() : 0);
    auto& mailbox = mailboxes[lane.offer.rank];
    if (mailbox == nullptr) mailbox = remotes_.emplace_back(context_.import(theirs.mailbox)).get();
    lane.mailbox = mailbox;
    lane.reach.mailbox = reaches(context_, device_, *mailbox);
    lane.unit = std::min(lane.offer.unit, lane.theirs.unit);
    lane.slot_bytes = slot_bytes(device_kind(), lane.offer.bytes, lane.unit);
    const uint64_t room = sends ? lane.theirs.slot_bytes : lane.offer.slot_bytes;
    lane.has_slots = lane.slot_bytes > 0 && lane.slot_bytes <= room;
    if (!sends) return;
    lane.target = remotes_.emplace_back(context_.import(theirs.regions.at(found.region))).get();
    lane.reach.region = reaches(context_, device_, *lane.target);
  };
  for (Lane& lane : sends_) meet(lane, true);
  for (Lane& lane : receives_) meet(lane, false);
}

// In the order of the offer's lanes: the sends, then the receives.
Bytes Plan::reach() const {
  ByteWriter to;
  for (const auto* lanes : {&sends_, &receives_})
    for (const Lane& lane : *lanes)
      to.put(static_cast<uint8_t>((lane.reach.region ? kReachesRegion : 0) |
                                  (must_post(lanes == &sends_, lane.reach, lane.has_slots) ? kMustPost : 0)));
  return to.take();
}

void Plan::choose_ways(const std::vector<Bytes>& reach) {
  const auto decide = [&](Lane& lane, bool sends) {
    const auto there = static_cast<uint8_t>(reach[static_cast<size_t>(lane.offer.rank)].at(lane.place));
    const bool region = sends ? lane.reach.region : (there & kReachesRegion) != 0;
    if (must_post(sends, lane.reach, lane.has_slots) || (there & kMustPost) != 0)
      lane.kind = LaneKind::posted;
    else if (is_own(lane))
      lane.kind = LaneKind::straight;
    else
      lane.kind = choose(device_kind(), lane.offer.bytes, region, lane.has_slots);
    lane.pieces = pieces_of(device_kind(), lane.kind, lane.offer.bytes, lane.unit);
    describe_lane(lane, sends);
  };
  for (Lane& lane : sends_) decide(lane, true);
  for (Lane& lane : receives_) decide(lane, false);
}

void Plan::describe_lane(const Lane& lane, bool sends) {
  description_.push_back(format("{} {} bytes {} rank {}, tag {}: {}{}", sends ? "send" : "receive",
                                lane.offer.bytes, sends ? "to" : "from", lane.offer.rank, lane.offer.tag,
                                text_of(lane.kind, device_kind()),
                                lane.pieces > 1 ? format(", shared by {} blocks", lane.pieces) : ""));
}

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

// Slots may be filled again two epochs later, once the receiver has emptied them; the target of a straight
// lane once the receiver has started the same epoch.
void Plan::add_send(const Lane& lane) {
  if (lane.kind == LaneKind::posted) return post_send(lane);
  ProgramStep step;
  step.rank = lane.offer.rank;
  step.from = lane.region->address() + lane.block.offset;
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit;
  step.gate = {own_words(lane), 0, 1, lane.kind == LaneKind::slots ? uint64_t{2} : 0, lane.pieces};
  step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
  if (lane.kind == LaneKind::slots) {
    step.to = lane.mailbox->address_on(device_) + lane.theirs.slots;
    step.to_turn = static_cast<int64_t>(lane.slot_bytes);
    if (in_step_with(lane.offer.rank)) step.gate = {};
    if (device_kind() != PW_HOST) {
      step.kind = StepKind::send_packets;
      step.mark = {};
    }
  } else {
    step.to = lane.target->address_on(device_) + lane.theirs.block.offset;
    step.layout = straight_layout(lane);
    if (is_own(lane)) step.gate = {};
  }
  program_.start.push_back(step);
}

void Plan::add_receive(const Lane& lane) {
  if (lane.kind == LaneKind::posted) return post_receive(lane);
  ProgramStep step;
  step.rank = lane.offer.rank;
  if (lane.kind == LaneKind::straight) {
    step.kind = StepKind::consent;
    step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
    if (!is_own(lane)) program_.start.insert(program_.start.begin(), step);
    step.kind = StepKind::wait;
    step.mark = {};
    step.gate = {own_words(lane), 0, 1, 0, lane.pieces};
    program_.finish.push_back(step);
    return;
  }
  step.to = lane.region->address() + lane.block.offset;
  step.from = mailbox_->address() + lane.offer.slots;
  step.from_turn = static_cast<int64_t>(lane.slot_bytes);
  step.layout = lane.layout;
  step.pieces = lane.pieces;
  step.unit = lane.unit;
  if (!in_step_with(lane.offer.rank)) step.mark = {their_words(lane), 0, 1, 0, lane.pieces};
  if (device_kind() == PW_HOST)
    step.gate = {own_words(lane), 0, 1, 0, lane.pieces};
  else
    step.kind = StepKind::receive_packets;
  program_.finish.push_back(step);
}

void Plan::own(const Raise& raise, bool by_device) {
  SignalSender& sender = *raise.signal->sender();
  std::lock_guard lock(sender.lock);
  if (sender.planned)
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: this signal of rank {} is raised by another plan, or twice by this one",
                       raise.signal->rank()));
  sender.planned = true;
  owned_.push_back({raise, by_device});
}

GrowingWords Plan::words_of(const Raise& raise) {
  uint64_t* word = raise.signal->word_on(device_);
  own(raise, true);
  return {word, raise.signal->sender()->raised, raise.by, 0, 1};
}

GrowingWords Plan::words_of(const Watch& watch) {
  uint32_t count = 0;
  uint64_t* words = watch.signal->words_on(device_, count);
  if (count != 1)
    throw Error(PW_INVALID_ARGUMENT,
                "peerway: a plan waits for signals of one sender; name it when the signal is made");
  return {words, watch.signal->planned, watch.by, watch.lead, 1};
}

void Plan::add_signals() {
  for (const Raise& raise : raises_)
    if (raise.signal->word() == nullptr && !raise.signal->is_device_signal())
      post({raise.signal->rank(), {}, posted(raise), {}});
    else
      program_.start.push_back({.kind = StepKind::raise,
                                .rank = raise.signal->rank(),
                                .layout = {},
                                .gate = {},
                                .mark = words_of(raise)});
  for (const Watch& wait : waits_)
    program_.finish.push_back({.kind = StepKind::wait,
                               .rank = wait.signal->sender(),
                               .layout = {},
                               .gate = words_of(wait),
                               .mark = {}});
}

// The after that a move waits for.
GrowingWords Plan::gate_of(const Move& move, std::vector<bool>& used) {
  GrowingWords gate;
  const int rank = move.transfer.remote->rank();
  for (size_t a = 0; a < afters_.size(); ++a) {
    if (afters_[a].signal->sender() != rank) continue;
    if (gate.word != nullptr)
      throw Error(PW_INVALID_ARGUMENT,
                  format("peerway: a put or get with rank {} after two signals of it; one must do", rank));
    gate = words_of(afters_[a]);
    used[a] = true;
  }
  if (move.raise && move.raise->signal->rank() != rank)
    throw Error(
        PW_INVALID_ARGUMENT,
        format("peerway: a plan's put to rank {} cannot raise a signal of rank {}; only one of the same rank",
               rank, move.raise->signal->rank()));
  return gate;
}

void Plan::add_move(const Move& move, const GrowingWords& gate) {
  const Transfer& transfer = move.transfer;
  Remote& remote = *transfer.remote;
  const Copy copy = copy_between(transfer, transfer.local->address() + transfer.local_offset,
                                 remote.address_on(device_) + transfer.remote_offset);
  ProgramStep step;
  step.rank = remote.rank();
  step.to = copy.to;
  step.from = copy.from;
  step.layout = copy.layout;
  step.pieces = pieces_of(device_kind(), LaneKind::straight, transfer.layout.shape.bytes(), 0);
  step.gate = gate;
  if (move.raise) step.mark = words_of(*move.raise);
  program_.start.push_back(step);
}

void Plan::add_moves() {
  std::vector<bool> used(afters_.size());
  for (const Move& move : moves_) {
    const Transfer& transfer = move.transfer;
    const int rank = transfer.remote->rank();
    const bool mapped = reaches(context_, device_, *transfer.remote);
    const GrowingWords gate = gate_of(move, used);
    if (mapped)
      add_move(move, gate);
    else
      post({rank, transfer, move.raise ? std::optional(posted(*move.raise)) : std::nullopt, gate});
    description_.push_back(format("{} {} bytes, rank {}: {}", transfer.op == Op::put ? "put" : "get",
                                  transfer.layout.shape.bytes(), rank,
                                  text_of(mapped ? LaneKind::straight : LaneKind::posted, device_kind())));
  }
  for (size_t a = 0; a < afters_.size(); ++a)
    if (!used[a])
      program_.start.push_back({.kind = StepKind::wait,
                                .rank = afters_[a].signal->sender(),
                                .layout = {},
                                .gate = words_of(afters_[a]),
                                .mark = {}});
}

// A mark of the processor is followed by a look whether its owner sleeps.
void Plan::add_wakes() {
  for (auto* steps : {&program_.start, &program_.finish})
    for (ProgramStep& step : *steps)
      if (step.mark.word != nullptr) step.woken = &context_.importer().control(step.rank)->sleepers;
}

void Plan::prepare(bool alone) {
  change();
  if (alone && !(sends_.empty() && receives_.empty()))
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: a plan with {} sends and {} receives cannot be prepared alone",
                       sends_.size(), receives_.size()));
  program_.guard = make_guard(device_, timeout_ns_);
  program_.waiting = context_.waiting();
  // What goes wrong here is told to the others in the next exchange, so that all ranks end alike.
  std::string refusal;
  const auto attempt = [&](auto&& body) {
    if (!refusal.empty()) return;
    try {
      body();
    } catch (const Error& error) {
      if (alone) throw;
      refusal = error.what();
    }
  };
  Bytes mine;
  attempt([&] {
    open_mailbox();
    add_signals();
    add_moves();
    mine = pack(offer());
  });
  if (!alone) {
    std::vector<PlanOffer> offers;
    for (const Bytes& bytes : agree(context_.team(), refusal, mine))
      offers.push_back(parse_plan_offer(bytes));
    attempt([&] { find_partners(offers); });
    const std::vector<Bytes> all = agree(context_.team(), refusal, reach());
    attempt([&] { choose_ways(all); });
    const bool any_posted = std::ranges::any_of(all, [](const Bytes& rank) {
      return std::ranges::any_of(
          rank, [](std::byte lane) { return (static_cast<uint8_t>(lane) & kMustPost) != 0; });
    });
    if (any_posted) {
      Bytes signals;
      attempt([&] { signals = open_signals(); });
      const std::vector<Bytes> opened = agree(context_.team(), refusal, signals);
      attempt([&] { meet_signals(opened); });
    }
    attempt([&] {
      for (const Lane& lane : sends_) add_send(lane);
      for (const Lane& lane : receives_) add_receive(lane);
    });
  }
  attempt([&] {
    if (device_kind() == PW_HOST) add_wakes();
    add_trigger();
    runner_ = device_.make_runner(program_);
    guard_losses();
    serve();
  });
  if (!alone) agree(context_.team(), refusal, {});
}

}  // namespace pw
