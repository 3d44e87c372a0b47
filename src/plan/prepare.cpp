// Plan::prepare: what ranks tell one another, and which way each lane goes.
#include <algorithm>
#include <map>
#include <set>

#include "base/config.h"
#include "base/format.h"
#include "base/status.h"
#include "plan/guard.h"
#include "plan/methods.h"
#include "plan/plan.h"

namespace pw {
namespace {

constexpr const char* kPrepare = "prepare its plan";

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

// The other ends of the lanes: whom a prepare talks to.
std::set<int> Plan::partners() const {
  std::set<int> ranks;
  for (const auto* lanes : {&sends_, &receives_})
    for (const Lane& lane : *lanes) ranks.insert(lane.offer.rank);
  return ranks;
}

PlanOffer Plan::offer_to(int rank) {
  PlanOffer offer;
  offer.device_kind = device_kind();
  offer.mailbox = context_.key_of(*mailbox_);
  for (const Lane& lane : sends_)
    if (lane.offer.rank == rank) offer.sends.push_back(lane.offer);
  std::vector<const Region*> known;
  for (Lane& lane : receives_) {
    if (lane.offer.rank != rank) continue;
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

void Plan::find_partners(const Letters& told) {
  std::map<int, PlanOffer> offers;
  const std::set<int> mine = partners();
  for (const auto& [rank, text] : told) {
    const PlanOffer& offer = offers[rank] = parse_plan_offer(text);
    if (mine.contains(rank)) continue;
    const bool sends = !offer.sends.empty();
    const LaneOffer& lane = sends ? offer.sends.front() : offer.receives.at(0);
    throw Error(
        PW_INVALID_ARGUMENT,
        format("peerway: the {} of {} bytes with rank {} and tag {} in the plan of rank {} has no {} in "
               "this rank's plan",
               sends ? "send" : "receive", lane.bytes, lane.rank, lane.tag, rank,
               sends ? "receive" : "send"));
  }
  std::map<int, Remote*> mailboxes;
  const auto meet = [&](Lane& lane, bool sends) {
    const PlanOffer& theirs = offers.at(lane.offer.rank);
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
    lane.reach.mailbox = reaches(context_, device_, *mailbox);
    lane.unit = std::min(lane.offer.unit, lane.theirs.unit);
    lane.slot_bytes = slot_bytes(device_kind(), lane.offer.bytes, lane.unit);
    const uint64_t room = sends ? lane.theirs.slot_bytes : lane.offer.slot_bytes;
    lane.has_slots = lane.slot_bytes > 0 && lane.slot_bytes <= room;
    if (!sends) return;
    lane.target = import_of(lane.offer.rank, KeyType::region, theirs.regions.at(found.region));
    lane.reach.region = reaches(context_, device_, *lane.target);
  };
  for (Lane& lane : sends_) meet(lane, true);
  for (Lane& lane : receives_) meet(lane, false);
}

// A rank's own lane needs no partner that is ready.
LaneKind Plan::routed(const Lane& lane) const {
  if (must_post(true, lane.reach, lane.has_slots)) return LaneKind::posted;
  if (is_own(lane)) return LaneKind::straight;
  const auto methods = methods_of(device_kind(), lane.reach, lane.has_slots);
  const auto route = context_.resolver().route_send(*lane.region, *lane.target, methods);
  return kind_of_method(route->query().available.at(route->lookup(lane.offer.bytes).path));
}

// In the order of the offer's lanes: the sends, then the receives.
Bytes Plan::report_lanes_to(int rank) {
  ByteWriter to;
  for (Lane& lane : sends_) {
    if (lane.offer.rank != rank) continue;
    lane.kind = routed(lane);
    to.put(static_cast<uint8_t>((lane.kind == LaneKind::straight ? kStraight : 0) |
                                (lane.kind == LaneKind::posted ? kPost : 0)));
  }
  for (const Lane& lane : receives_)
    if (lane.offer.rank == rank)
      to.put(static_cast<uint8_t>(must_post(false, lane.reach, lane.has_slots) ? kPost : 0));
  return to.take();
}

// The sender has chosen; that an end must post overrules it.
void Plan::settle_kinds(const Letters& reported) {
  const auto settle = [&](Lane& lane, bool sends) {
    ByteReader told(letter_of(reported, lane.offer.rank), "what a rank reports of its lanes");
    told.take(lane.place);
    const auto there = told.get<uint8_t>();
    if (!sends) lane.kind = (there & kStraight) != 0 ? LaneKind::straight : LaneKind::slots;
    if ((there & kPost) != 0 || (!sends && must_post(false, lane.reach, lane.has_slots)))
      lane.kind = LaneKind::posted;
    lane.pieces = pieces_of(device_kind(), lane.kind, lane.offer.bytes, lane.unit);
    describe_lane(lane, sends);
  };
  for (Lane& lane : sends_) settle(lane, true);
  for (Lane& lane : receives_) settle(lane, false);
}

void Plan::describe_lane(const Lane& lane, bool sends) {
  description_.push_back(format("{} {} bytes {} rank {}, tag {}: {}{}", sends ? "send" : "receive",
                                lane.offer.bytes, sends ? "to" : "from", lane.offer.rank, lane.offer.tag,
                                text_of(lane.kind, device_kind()),
                                lane.pieces > 1 ? format(", shared by {} blocks", lane.pieces) : ""));
}

void Plan::prepare(bool alone) {
  if (!alone) {
    set_meeting(hold(context_.team(), kPrepare, [&](Meeting& meeting) { prepare_in(meeting); }));
    return;
  }
  if (!(sends_.empty() && receives_.empty()))
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: a plan with {} sends and {} receives cannot be prepared alone",
                       sends_.size(), receives_.size()));
  begin_program();
  end_program();
}

void Plan::prepare_among(std::span<const int> ranks) {
  const Team& team = context_.team();
  const auto has = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
  const auto refuse = [&](const std::string& what) {
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: a plan is to be prepared among {} ranks {}", ranks.size(), what));
  };
  if (!has(team.rank())) refuse(format("without rank {}, which prepares it", team.rank()));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= team.size())
      refuse(format("with rank {}; the team has ranks 0 to {}", rank, team.size() - 1));
    if (std::ranges::count(ranks, rank) > 1) refuse(format("with rank {} twice", rank));
  }
  for (const int rank : partners())
    if (!has(rank)) refuse(format("without rank {}, which it has a send or receive with", rank));
  set_meeting(hold(context_.team(), context_.team().meet_among(ranks), kPrepare,
                   [&](Meeting& meeting) { prepare_in(meeting); }));
}

// What this throws ends the meeting at all ranks. The last exchange tells the partners that this rank can go
// on: what they start from then on may write to it.
void Plan::prepare_in(Meeting& meeting) {
  begin_program();
  join_lanes(meeting);
  end_program();
  exchange(meeting, [](int) { return Bytes(); });
}

// An objection of a rank further away may come when this plan is prepared and even started.
void Plan::set_meeting(std::unique_ptr<Meeting> meeting) {
  meeting_ = std::move(meeting);
  meeting_->on_objection([guard = program_.guard, waiting = program_.waiting](const Error& why) {
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
  on_loss_ = context_.team().on_loss([guard, waiting, depends = depends_](int rank) {
    if (!depends.contains(PW_ANY_RANK) && !depends.contains(rank)) return;
    cancel(*guard, PW_PEER_LOST, rank);
    waiting->wake();
  });
}

void Plan::begin_program() {
  change();
  if (context_.closed())
    throw Error(PW_CLOSED, "peerway: the context of this plan was closed before the plan was prepared");
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

template <typename Write>
Letters Plan::exchange(Meeting& meeting, Write&& write) {
  Letters letters;
  for (const int rank : partners()) letters.emplace_back(rank, write(rank));
  return meeting.exchange(letters, config_number("timeout"));
}

// What each rank offers a partner, how it would send to the partner (and what must be posted), and the
// signals of what is posted.
void Plan::join_lanes(Meeting& meeting) {
  find_partners(exchange(meeting, [&](int rank) { return pack(offer_to(rank)); }));
  settle_kinds(exchange(meeting, [&](int rank) { return report_lanes_to(rank); }));
  open_signals();
  meet_signals(exchange(meeting, [&](int rank) { return signals_for(rank); }));
  for (const Lane& lane : sends_) add_send(lane);
  for (const Lane& lane : receives_) add_receive(lane);
}

}  // namespace pw
