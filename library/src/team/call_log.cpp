#include "team/call_log.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace pw {

/// Returns the next number in the set that this number belongs to.
uint64_t CallLog::next_of(uint64_t number) const {
  if ((number & wire::kOfSome) == 0) return next_;
  const uint64_t first = number >> kCountBits << kCountBits;
  const auto entry = next_among_.find(first);
  return entry == next_among_.end() ? first : entry->second;
}

CallLog::OpenExchange* CallLog::find(uint64_t number) {
  if (number >= next_of(number)) {
    early_.insert(number);
    return &open_[number];
  }
  const auto entry = open_.find(number);
  return entry == open_.end() ? nullptr : &entry->second;
}

uint64_t CallLog::Place::with(int rank) const {
  const auto some = of_some.find(rank);
  return of_all + (some == of_some.end() ? 0 : some->second);
}

bool CallLog::Begun::includes(int rank) const {
  return among.empty() || std::ranges::find(among, rank) != among.end();
}

CallLog::Beginning CallLog::begin(const CollectiveCall& call) {
  Beginning beginning = begin({next_, call, next_place_, {}});
  ++next_;
  ++next_place_.of_all;
  return beginning;
}

CallLog::Beginning CallLog::begin_among(CallKind kind, std::vector<int> ranks) {
  std::ranges::sort(ranks);
  const uint64_t set =
      hash_of({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(ranks.front())});
  const uint64_t first = wire::kOfSome | (set >> (kCountBits + 1) << kCountBits);
  const uint64_t number = next_among_.try_emplace(first, first).first->second++;
  Beginning beginning = begin({number, {kind, 0}, next_place_, ranks});
  for (const int rank : ranks) ++next_place_.of_some[rank];
  return beginning;
}

CallLog::Beginning CallLog::begin(Begun call) {
  Beginning beginning{call.number, early_conflicts(call)};
  early_.erase(call.number);
  if (through_server(call.call.kind)) {
    open_.erase(call.number);
  } else {
    OpenExchange& exchange = open_[call.number];
    exchange.kind = call.call.kind;
    exchange.place = call.place;
    exchange.claims.clear();
  }
  begun_.push_back(std::move(call));
  if (begun_.size() > kRemembered) begun_.pop_front();
  return beginning;
}

bool CallLog::holds(uint64_t number) const { return open_.contains(number) && !early_.contains(number); }

std::vector<CallLog::Conflict> CallLog::early_conflicts(const Begun& call) const {
  std::vector<Conflict> conflicts;
  for (const uint64_t number : early_) {
    if (aborts_.contains(number)) continue;
    for (const auto& [from, claim] : open_.at(number).claims) {
      const bool same_place = call.includes(from) && claim.place == call.place.with(from);
      if (same_place && (number != call.number || claim.kind != call.call.kind))
        conflicts.push_back({call.number, call.call, from, number, {claim.kind, 0}});
    }
  }
  return conflicts;
}

/// Returns null if that call has not begun, or was too long ago.
const CallLog::Begun* CallLog::begun_at(int rank, uint64_t place) const {
  if (place >= next_place_.with(rank)) return nullptr;
  const auto call = std::find_if(begun_.rbegin(), begun_.rend(), [&](const Begun& each) {
    return each.includes(rank) && each.place.with(rank) == place;
  });
  return call == begun_.rend() ? nullptr : &*call;
}

wire::ExchangePart CallLog::header_to(int rank, uint64_t number) const {
  const OpenExchange& exchange = open_.at(number);
  return {number, exchange.kind, exchange.place.with(rank), {}};
}

std::optional<CallLog::Conflict> CallLog::conflict_with(int from, const wire::ExchangePart& part) const {
  if (aborts_.contains(part.number)) return {};
  if (const Begun* mine = begun_at(from, part.place)) {
    if (mine->number == part.number && mine->call.kind == part.kind) return {};
    return Conflict{mine->number, mine->call, from, part.number, {part.kind, 0}};
  }
  if (!holds(part.number)) return {};
  const CallKind kind = open_.at(part.number).kind;
  if (kind == part.kind) return {};
  return Conflict{part.number, {kind, 0}, from, part.number, {part.kind, 0}};
}

void CallLog::end(uint64_t number) { open_.erase(number); }

void CallLog::address(uint64_t number, const std::vector<int>& ranks) {
  open_.at(number).partners.insert(ranks.begin(), ranks.end());
}

std::vector<int> CallLog::partners(uint64_t number) const {
  const auto& partners = open_.at(number).partners;
  return {partners.begin(), partners.end()};
}

bool CallLog::accept(int from, const wire::ExchangePart& part) {
  if (aborts_.contains(part.number)) return true;
  OpenExchange* exchange = find(part.number);
  if (exchange == nullptr || (exchange->past_first && !exchange->partners.contains(from))) return false;
  if (early_.contains(part.number)) exchange->claims.try_emplace(from, Claim{part.kind, part.place});
  exchange->messages[from].emplace_back(part.data.begin(), part.data.end());
  return true;
}

std::vector<int> CallLog::missing(uint64_t number, const std::vector<int>& ranks) const {
  const auto& messages = open_.at(number).messages;
  std::vector<int> those;
  for (const int rank : ranks)
    if (const auto entry = messages.find(rank); entry == messages.end() || entry->second.empty())
      those.push_back(rank);
  return those;
}

PeerMessages CallLog::take(uint64_t number, const std::vector<int>& ranks) {
  OpenExchange& exchange = open_.at(number);
  PeerMessages taken;
  for (auto& [from, messages] : exchange.messages) {
    const bool awaited = std::ranges::find(ranks, from) != ranks.end();
    if (messages.empty() || (!awaited && exchange.past_first)) continue;
    exchange.partners.insert(from);
    taken.emplace_back(from, std::move(messages.front()));
    messages.pop_front();
  }
  exchange.past_first = true;
  return taken;
}

bool CallLog::abort(uint64_t number, const Error& why) {
  if (!aborts_.emplace(number, why).second) return false;
  const auto exchange = open_.find(number);
  if (exchange != open_.end() && exchange->second.on_abort)
    std::exchange(exchange->second.on_abort, nullptr)(why);
  return true;
}

void CallLog::refuse(uint64_t number, const Error& why) {
  const auto exchange = open_.find(number);
  if (exchange != open_.end() && !exchange->second.refused) exchange->second.refused = why;
}

bool CallLog::ended(uint64_t number) const { return aborts_.contains(number) || open_.at(number).refused; }

void CallLog::check(uint64_t number) const {
  const auto reason = aborts_.find(number);
  if (reason != aborts_.end()) throw AbortedElsewhere(reason->second.status(), reason->second.what());
  if (const auto& refused = open_.at(number).refused) throw Error(*refused);
}

void CallLog::on_abort(uint64_t number, std::function<void(const Error&)> call) {
  const auto reason = aborts_.find(number);
  if (reason != aborts_.end())
    call(reason->second);
  else
    open_.at(number).on_abort = std::move(call);
}

}  // namespace pw
