#include "plan/negotiation/negotiation.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/status.h"
#include "base/timeout.h"
#include "plan/negotiation/methods.h"

namespace pw {
namespace {

std::vector<Lane> lanes_of(const std::vector<LaneEnd>& ends, bool sends) {
  std::vector<Lane> lanes;
  for (const LaneEnd& end : ends) {
    Lane& lane = lanes.emplace_back();
    static_cast<LaneEnd&>(lane) = end;
    lane.offer.rank = end.rank;
    lane.offer.tag = end.tag;
    lane.offer.bytes = end.bytes;
    lane.offer.unit = unit_of(end.region->address() + end.block.offset, end.layout.shape,
                              sends ? end.layout.from : end.layout.to);
    lane.offer.block = end.block;
  }
  return lanes;
}

// The number of workers of a GPU that share a send. `of_all`: the bytes of all sends of a start that go by
// the same method.
uint32_t pieces_of(const Lane& lane, uint64_t of_all) {
  switch (lane.method) {
    case SendMethod::slots:
      return packet_pieces(lane.offer.bytes, lane.unit());
    case SendMethod::lines:
      return line_pieces(lane.offer.bytes, lane.unit(), of_all);
    case SendMethod::straight:
      return straight_pieces(lane.offer.bytes, of_all);
    case SendMethod::posted:
      break;
  }
  return 1;
}

}  // namespace

Negotiation::Negotiation(Context& context, Device& device, const PlanOperations& operations)
    : context_(context),
      device_(device),
      partners_(operations.partners()),
      common_start_(operations.common_start()),
      sends_(lanes_of(operations.sends(), true)),
      receives_(lanes_of(operations.receives(), false)) {
  uint64_t bytes = 0;
  for (auto* lanes : {&sends_, &receives_})
    for (Lane& lane : *lanes) {
      lane.offer.words = bytes;
      bytes += kBytesOfWords;
    }
  mailbox_ = allocate(bytes);
}

// Allocates memory for the plan, filled with zeros; null for 0 bytes.
std::shared_ptr<Region> Negotiation::allocate(uint64_t bytes) {
  return bytes == 0 ? nullptr : context_.allocate_part({device_.id().kind, device_.id().index}, bytes);
}

// Finds room for the two slots of each receive through slots. The senders have chosen the methods by now.
void Negotiation::open_slots() {
  uint64_t bytes = 0;
  for (Lane& lane : receives_) {
    if (!through_slots(lane.method)) continue;
    if (slots_in_mailbox(lane)) {
      lane.slots_at = lane.offer.words + sizeof(uint64_t);
      continue;
    }
    lane.slots_at = bytes;
    bytes += 2 * lane.slot_bytes;
  }
  slots_ = allocate(bytes);
}

PlanOffer Negotiation::offer_to(int rank) {
  PlanOffer offer;
  offer.device_kind = device_kind();
  offer.mailbox = context_.key_of(*mailbox_);
  for (const Lane& lane : sends_)
    if (lane.rank == rank) offer.sends.push_back(lane.offer);
  std::vector<const Region*> known;
  for (Lane& lane : receives_) {
    if (lane.rank != rank) continue;
    const auto region = std::ranges::find(known, lane.region.get());
    lane.offer.region = static_cast<uint32_t>(region - known.begin());
    if (region == known.end()) {
      known.push_back(lane.region.get());
      offer.regions.push_back(context_.key_of(*lane.region));
    }
    offer.receives.push_back(lane.offer);
  }
  return offer;
}

// Imports a key that the rank has sent. It must be the key of a region or signal of that rank itself, and of
// the type as which it will be used.
Remote* Negotiation::import_of(int rank, KeyType type, ByteView key) {
  Remote* remote = remotes_.emplace_back(context_.import(key)).get();
  if (remote->rank() == rank && remote->key.type == type) return remote;
  throw Error(PW_BAD_KEY, format("rank {} offers for a plan a key of a {} of rank {}; it must be of a {} "
                                 "of its own",
                                 rank, remote->key.type == KeyType::region ? "region" : "signal",
                                 remote->rank(), type == KeyType::region ? "region" : "signal"));
}

void Negotiation::match_lanes(const PeerMessages& offered) {
  std::map<int, PlanOffer> offers;
  for (const auto& [rank, text] : offered) {
    const PlanOffer& offer = offers[rank] = parse_plan_offer(text);
    if (partners_.contains(rank)) continue;
    const bool sends = !offer.sends.empty();
    if (!sends && offer.receives.empty())
      throw Error(
          PW_BAD_KEY,
          format("rank {} offers a plan without a send or receive, and is no partner of this one", rank));
    const LaneOffer& lane = sends ? offer.sends.front() : offer.receives.front();
    throw Error(PW_INVALID_ARGUMENT,
                format("the {} of {} bytes with rank {} and tag {} in the plan of rank {} has no {} in "
                       "this rank's plan",
                       sends ? "send" : "receive", lane.bytes, lane.rank, lane.tag, rank,
                       sends ? "receive" : "send"));
  }
  std::map<int, Remote*> mailboxes;
  const auto match = [&](Lane& lane, bool sends) {
    const PlanOffer& theirs = offers.at(lane.rank);
    const std::vector<LaneOffer>& side = sends ? theirs.receives : theirs.sends;
    const LaneOffer& other = partner(lane.offer, context_.team().rank(), side, sends);
    if (theirs.device_kind != device_kind())
      throw Error(PW_UNSUPPORTED, format("tag {}: this rank's plan is on {}, that of rank {} on another "
                                         "kind of device",
                                         lane.tag, to_string(device_.id()), lane.rank));
    lane.theirs = other;
    lane.partner_index = static_cast<size_t>(&other - side.data()) + (sends ? theirs.sends.size() : 0);
    auto& mailbox = mailboxes[lane.rank];
    if (mailbox == nullptr) mailbox = import_of(lane.rank, KeyType::region, theirs.mailbox);
    lane.mailbox = mailbox;
    check_inside("mailbox", other.words, kBytesOfWords, mailbox->bytes());
    lane.reach.mailbox = context_.reaches(device_, *mailbox);
    lane.reach.lines = lane.reach.mailbox && device_.carries_lines(mailbox->key.exported);
    if (!sends) return;
    lane.target = import_of(lane.rank, KeyType::region, theirs.regions.at(other.region));
    lane.reach.region = context_.reaches(device_, *lane.target);
  };
  for (Lane& lane : sends_) match(lane, true);
  for (Lane& lane : receives_) match(lane, false);
}

// The method that the route gives for a send of `bytes` bytes. A send to this rank itself always goes
// straight, because there is no partner to wait for. Costs were measured with receivers that had started
// before. If the ranks start together, a method that waits for the receiver costs a small message more in
// round 0. On GPUs the cost of a message includes a launch, so it does not tell that of the wait.
SendMethod Negotiation::method_of_send(const Lane& lane, uint64_t bytes) const {
  if (is_own(lane) && lane.reach.mailbox) return SendMethod::straight;
  const auto methods = methods_of(device_kind(), lane.reach);
  const auto route = context_.resolver().route_send(*lane.region, *lane.target, methods);
  const std::vector<std::string>& available = route->query().available;
  if (!common_start_ || lane.round > 0 || device_kind() != PW_HOST)
    return method_named(available.at(route->lookup(bytes).path));
  const double small_message =
      route->cost_of(name_of_method(SendMethod::slots, device_kind()), sizeof(uint64_t));
  return method_named(available.at(route->path_with(bytes, [&](const std::string& method) {
    return through_slots(method_named(method)) ? 0 : small_message;
  })));
}

// The method depends on the number of bytes. A CPU sends one message after another, so there each message
// counts by its own bytes. On a GPU the blocks of one kernel share all sends of a round, so these count by
// the sum of their bytes. The sum leaves out what the proxy sends, and what this rank sends to itself, which
// crosses no link.
void Negotiation::choose_methods() {
  const bool on_host = device_kind() == PW_HOST;
  std::map<uint32_t, uint64_t> together;  // by round
  for (const Lane& lane : sends_)
    if (lane.reach.mailbox && !is_own(lane)) together[lane.round] += lane.offer.bytes;
  std::map<std::pair<uint32_t, SendMethod>, uint64_t> bytes;  // by round and method
  for (Lane& lane : sends_) {
    lane.method =
        method_of_send(lane, on_host || !lane.reach.mailbox ? lane.offer.bytes : together[lane.round]);
    bytes[{lane.round, lane.method}] += lane.offer.bytes;
  }
  if (!on_host)
    for (Lane& lane : sends_) lane.pieces = pieces_of(lane, bytes[{lane.round, lane.method}]);
  for (Lane& lane : receives_) lane.method = lane.reach.mailbox ? SendMethod::slots : SendMethod::posted;
}

// The reports are in the order in which offer_to() lists the lanes: the sends, then the receives.
Bytes Negotiation::report_lanes_to(int rank) const {
  ByteWriter to;
  for (const auto* lanes : {&sends_, &receives_})
    for (const Lane& lane : *lanes)
      if (lane.rank == rank) put_report(to, {lane.method, lane.pieces});
  return to.take();
}

// A lane uses the method that its sender chose, except that it is posted if either end needs the proxy.
void Negotiation::agree_on_methods(const PeerMessages& reported) {
  const auto settle = [&](Lane& lane, bool sends) {
    const LaneReport there = parse_lane_report(message_of(reported, lane.rank), lane.partner_index);
    if (lane.method == SendMethod::posted || there.method == SendMethod::posted) {
      lane.method = SendMethod::posted;
      lane.pieces = 1;
    } else if (!sends) {
      lane.method = there.method;
      lane.pieces = device_kind() == PW_HOST ? 1 : there.pieces;  // one thread, and one word of the mailbox
    }
    lane.slot_bytes = slot_bytes(device_kind(), lane.offer.bytes, lane.unit());
  };
  for (Lane& lane : sends_) settle(lane, true);
  for (Lane& lane : receives_) settle(lane, false);
}

void Negotiation::open_signals() {
  for (auto* lanes : {&sends_, &receives_})
    for (Lane& lane : *lanes)
      if (lane.method == SendMethod::posted)
        lane.signal = signals_.emplace_back(std::make_unique<Signal>(context_, lane.rank)).get();
}

// What this rank has opened for its lanes with that rank: the key of the slots, and for each lane, in the
// order of offer_to(), the offset of its slots and the key of its signal. A key is empty if there is nothing
// of the kind.
Bytes Negotiation::opened_for(int rank) const {
  ByteWriter to;
  to.put_sized(slots_ != nullptr ? context_.key_of(*slots_) : Bytes());
  for (const auto* lanes : {&sends_, &receives_})
    for (const Lane& lane : *lanes) {
      if (lane.rank != rank) continue;
      to.put(lane.slots_at);
      to.put_sized(lane.method == SendMethod::posted ? lane.signal->key() : Bytes());
    }
  return to.take();
}

void Negotiation::import_opened(const PeerMessages& opened) {
  std::map<int, Remote*> slots;
  for (auto* lanes : {&sends_, &receives_})
    for (Lane& lane : *lanes) {
      if (lane.method == SendMethod::straight || (through_slots(lane.method) && lanes == &receives_))
        continue;
      ByteReader from(message_of(opened, lane.rank), "what a rank has opened for a plan");
      const ByteView slots_key = from.take_sized();
      uint64_t slots_at = 0;
      ByteView signal_key;
      for (size_t place = 0; place <= lane.partner_index; ++place) {
        slots_at = from.get<uint64_t>();
        signal_key = from.take_sized();
      }
      if (lane.method == SendMethod::posted) {
        lane.far_signal = import_of(lane.rank, KeyType::signal, signal_key);
        continue;
      }
      Remote*& theirs = slots_in_mailbox(lane) ? lane.mailbox : slots[lane.rank];
      if (theirs == nullptr) theirs = import_of(lane.rank, KeyType::region, slots_key);
      check_inside("slots", slots_at, 2 * lane.slot_bytes, theirs->bytes());
      lane.slots_at = slots_at;
      lane.slots = theirs;
    }
}

// Sends each partner what `write` returns for it, and returns what the partners sent.
PeerMessages Negotiation::exchange_with_partners(Exchange& exchange,
                                                 const std::function<Bytes(int rank)>& write) {
  PeerMessages messages;
  for (const int rank : partners_) messages.emplace_back(rank, write(rank));
  return exchange.exchange(messages, settings::timeout.nanoseconds());
}

// Round 1: each rank offers its sends and receives to the partner. Round 2: it reports the method of each
// send, and which lanes its proxy must take part in. Round 3: it tells what it has opened for the lanes,
// slots and the signals of posted ones.
void Negotiation::negotiate(Exchange& exchange) {
  match_lanes(exchange_with_partners(exchange, [&](int rank) { return pack(offer_to(rank)); }));
  choose_methods();
  agree_on_methods(exchange_with_partners(exchange, [&](int rank) { return report_lanes_to(rank); }));
  open_slots();
  open_signals();
  import_opened(exchange_with_partners(exchange, [&](int rank) { return opened_for(rank); }));
}

// Once this returns, this rank may start the plan: all partners are ready for what its starts write to them.
void Negotiation::confirm(Exchange& exchange) {
  exchange_with_partners(exchange, [](int) { return Bytes(); });
}

}  // namespace pw
