#include "team/meetings.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace pw {

/// Of the set that the number belongs to.
uint64_t Meetings::next_of(uint64_t number) const {
  if ((number & wire::kOfSome) == 0) return next_;
  const uint64_t first = number >> kCountBits << kCountBits;
  const auto found = next_among_.find(first);
  return found == next_among_.end() ? first : found->second;
}

Meetings::Meeting* Meetings::find(uint64_t number) {
  if (number >= next_of(number)) {
    early_.insert(number);
    return &open_[number];
  }
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : &found->second;
}

uint64_t Meetings::Place::with(int rank) const {
  const auto some = of_some.find(rank);
  return of_all + (some == of_some.end() ? 0 : some->second);
}

bool Meetings::Begun::includes(int rank) const {
  return among.empty() || std::ranges::find(among, rank) != among.end();
}

Meetings::Beginning Meetings::begin(const CollectiveCall& call) {
  Beginning beginning = begin({next_, call, next_place_, {}});
  ++next_;
  ++next_place_.of_all;
  return beginning;
}

Meetings::Beginning Meetings::begin_among(Collective kind, std::vector<int> ranks) {
  std::ranges::sort(ranks);
  const uint64_t set =
      hash_of({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(ranks.front())});
  const uint64_t first = wire::kOfSome | (set >> (kCountBits + 1) << kCountBits);
  const uint64_t number = next_among_.try_emplace(first, first).first->second++;
  Beginning beginning = begin({number, {kind, 0}, next_place_, ranks});
  for (const int rank : ranks) ++next_place_.of_some[rank];
  return beginning;
}

Meetings::Beginning Meetings::begin(Begun call) {
  Beginning beginning{call.number, early_conflicts(call)};
  early_.erase(call.number);
  if (through_hub(call.call.kind)) {
    open_.erase(call.number);
  } else {
    Meeting& meeting = open_[call.number];
    meeting.kind = call.call.kind;
    meeting.place = call.place;
    meeting.claims.clear();
  }
  begun_.push_back(std::move(call));
  if (begun_.size() > kRemembered) begun_.pop_front();
  return beginning;
}

bool Meetings::holds(uint64_t number) const { return open_.contains(number) && !early_.contains(number); }

std::vector<Meetings::Conflict> Meetings::early_conflicts(const Begun& call) const {
  std::vector<Conflict> conflicts;
  for (const uint64_t number : early_) {
    if (objections_.contains(number)) continue;
    for (const auto& [from, claim] : open_.at(number).claims) {
      const bool same_place = call.includes(from) && claim.place == call.place.with(from);
      if (same_place && (number != call.number || claim.kind != call.call.kind))
        conflicts.push_back({call.number, call.call, from, number, {claim.kind, 0}});
    }
  }
  return conflicts;
}

/// Null for one still to begin, and for one long ago.
const Meetings::Begun* Meetings::begun_at(int rank, uint64_t place) const {
  if (place >= next_place_.with(rank)) return nullptr;
  const auto call = std::find_if(begun_.rbegin(), begun_.rend(), [&](const Begun& each) {
    return each.includes(rank) && each.place.with(rank) == place;
  });
  return call == begun_.rend() ? nullptr : &*call;
}

wire::Letter Meetings::letter_to(int rank, uint64_t number) const {
  const Meeting& meeting = open_.at(number);
  return {number, meeting.kind, meeting.place.with(rank), {}};
}

std::optional<Meetings::Conflict> Meetings::conflict_with(int from, const wire::Letter& letter) const {
  if (objections_.contains(letter.number)) return {};
  if (const Begun* mine = begun_at(from, letter.place)) {
    if (mine->number == letter.number && mine->call.kind == letter.kind) return {};
    return Conflict{mine->number, mine->call, from, letter.number, {letter.kind, 0}};
  }
  if (!holds(letter.number)) return {};
  const Collective kind = open_.at(letter.number).kind;
  if (kind == letter.kind) return {};
  return Conflict{letter.number, {kind, 0}, from, letter.number, {letter.kind, 0}};
}

void Meetings::end(uint64_t number) { open_.erase(number); }

void Meetings::address(uint64_t number, const std::vector<int>& ranks) {
  open_.at(number).partners.insert(ranks.begin(), ranks.end());
}

std::vector<int> Meetings::partners(uint64_t number) const {
  const auto& partners = open_.at(number).partners;
  return {partners.begin(), partners.end()};
}

bool Meetings::letter(int from, const wire::Letter& letter) {
  if (objections_.contains(letter.number)) return true;
  Meeting* meeting = find(letter.number);
  if (meeting == nullptr || (meeting->past_first && !meeting->partners.contains(from))) return false;
  if (early_.contains(letter.number)) meeting->claims.try_emplace(from, Claim{letter.kind, letter.place});
  meeting->letters[from].emplace_back(letter.data.begin(), letter.data.end());
  return true;
}

std::vector<int> Meetings::missing(uint64_t number, const std::vector<int>& ranks) const {
  const auto& letters = open_.at(number).letters;
  std::vector<int> those;
  for (const int rank : ranks)
    if (const auto found = letters.find(rank); found == letters.end() || found->second.empty())
      those.push_back(rank);
  return those;
}

Letters Meetings::take(uint64_t number, const std::vector<int>& ranks) {
  Meeting& meeting = open_.at(number);
  Letters taken;
  for (auto& [from, letters] : meeting.letters) {
    const bool awaited = std::ranges::find(ranks, from) != ranks.end();
    if (letters.empty() || (!awaited && meeting.past_first)) continue;
    meeting.partners.insert(from);
    taken.emplace_back(from, std::move(letters.front()));
    letters.pop_front();
  }
  meeting.past_first = true;
  return taken;
}

bool Meetings::object(uint64_t number, const Error& why) {
  if (!objections_.emplace(number, why).second) return false;
  const auto meeting = open_.find(number);
  if (meeting != open_.end() && meeting->second.on_objection)
    std::exchange(meeting->second.on_objection, nullptr)(why);
  return true;
}

void Meetings::refuse(uint64_t number, const Error& why) {
  const auto meeting = open_.find(number);
  if (meeting != open_.end() && !meeting->second.refused) meeting->second.refused = why;
}

bool Meetings::ended(uint64_t number) const {
  return objections_.contains(number) || open_.at(number).refused;
}

void Meetings::check(uint64_t number) const {
  const auto objection = objections_.find(number);
  if (objection != objections_.end())
    throw OtherObjected(objection->second.status(), objection->second.what());
  if (const auto& refused = open_.at(number).refused) throw Error(*refused);
}

void Meetings::on_objection(uint64_t number, std::function<void(const Error&)> call) {
  const auto objection = objections_.find(number);
  if (objection != objections_.end())
    call(objection->second);
  else
    open_.at(number).on_objection = std::move(call);
}

}  // namespace pw
