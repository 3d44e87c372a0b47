// Plan::prepare: what ranks tell one another, and which way each lane goes.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "plan/plan.h"

namespace pw {
namespace {

constexpr const char* kPrepare = "prepare its plan";

}  // namespace

uint8_t Plan::device_kind() const { return static_cast<uint8_t>(device_.id().kind); }

// Where the program restricts the paths to others, memory of other ranks counts as out of reach.
bool Plan::reaches(Remote& remote) const {
  std::string why_not;
  if (remote.rank() != context_.team().rank() && !context_.resolver().uses_mappings()) return false;
  if (!remote.same_host() || !device_.reaches(remote.key.exported, why_not)) return false;
  try {
    remote.address_on(device_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

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

// What a rank offers is its own, and of the kind that it is used as.
Remote* Plan::import_of(int rank, KeyType type, ByteView key) {
  Remote* remote = remotes_.emplace_back(context_.import(key)).get();
  if (remote->rank() == rank && remote->key.type == type) return remote;
  throw Error(PW_BAD_KEY,
              format("peerway: rank {} offers for a plan a key of a {} of rank {}; it must be of a {} "
                     "of its own",
                     rank, remote->key.type == KeyType::region ? "region" : "signal", remote->rank(),
                     type == KeyType::region ? "region" : "signal"));
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
    if (mailbox == nullptr) mailbox = import_of(lane.offer.rank, KeyType::region, theirs.mailbox);
    lane.mailbox = mailbox;
    check_inside(found, mailbox->bytes());
    lane.reach.mailbox = reaches(*mailbox);
    lane.unit = std::min(lane.offer.unit, lane.theirs.unit);
    lane.slot_bytes = slot_bytes(device_kind(), lane.offer.bytes, lane.unit);
    const uint64_t room = sends ? lane.theirs.slot_bytes : lane.offer.slot_bytes;
    lane.has_slots = lane.slot_bytes > 0 && lane.slot_bytes <= room;
    if (!sends) return;
    lane.target = import_of(lane.offer.rank, KeyType::region, theirs.regions.at(found.region));
    lane.reach.region = reaches(*lane.target);
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

void Plan::prepare(bool alone) {
  change();
  if (alone && !(sends_.empty() && receives_.empty()))
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: a plan with {} sends and {} receives cannot be prepared alone",
                       sends_.size(), receives_.size()));
  // What goes wrong here is told to the others in the next exchange, so that all ranks end alike.
  Objection objection;
  Bytes mine;
  attempt(objection, [&] {
    if (context_.closed())
      throw Error(PW_CLOSED, "peerway: the context of this plan was closed before the plan was prepared");
    program_.guard = make_guard(device_, timeout_ns_);
    program_.waiting = context_.waiting();
    open_mailbox();
    add_signals();
    add_moves();
    mine = pack(offer());
  });
  if (!alone) join_lanes(objection, mine);
  attempt(objection, [&] {
    if (device_kind() == PW_HOST) add_wakes();
    add_trigger();
    runner_ = device_.make_runner(program_);
    guard_losses();
    serve();
  });
  if (!alone) agree(context_.team(), objection, {}, kPrepare);
  if (objection) throw Error(*objection);
}

// Three exchanges: what each rank offers, what each can reach of it, and the signals of what neither reaches.
void Plan::join_lanes(Objection& objection, const Bytes& mine) {
  const std::vector<Bytes> offered = agree(context_.team(), objection, mine, kPrepare);
  Bytes reached;
  attempt(objection, [&] {
    std::vector<PlanOffer> offers;
    for (const Bytes& bytes : offered) offers.push_back(parse_plan_offer(bytes));
    find_partners(offers);
    reached = reach();
  });
  const std::vector<Bytes> all = agree(context_.team(), objection, reached, kPrepare);
  attempt(objection, [&] { choose_ways(all); });
  const bool any_posted = std::ranges::any_of(all, [](const Bytes& rank) {
    return std::ranges::any_of(rank,
                               [](std::byte lane) { return (static_cast<uint8_t>(lane) & kMustPost) != 0; });
  });
  if (any_posted) {
    Bytes signals;
    attempt(objection, [&] { signals = open_signals(); });
    const std::vector<Bytes> opened = agree(context_.team(), objection, signals, kPrepare);
    attempt(objection, [&] { meet_signals(opened); });
  }
  attempt(objection, [&] {
    for (const Lane& lane : sends_) add_send(lane);
    for (const Lane& lane : receives_) add_receive(lane);
  });
}

}  // namespace pw
