#include "team/meetings.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace pw {

/// Of the set that the number belongs to.
uint64_t Meetings::next_of(uint64_t number) const {
  if ((number & kAmong) == 0) return next_;
  const uint64_t first = number >> kCountBits << kCountBits;
  const auto found = next_among_.find(first);
  return found == next_among_.end() ? first : found->second;
}

Meetings::Meeting* Meetings::find(uint64_t number) {
  if (number >= next_of(number)) return &open_[number];
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : &found->second;
}

uint64_t Meetings::begin() {
  open_.try_emplace(next_);
  return next_++;
}

uint64_t Meetings::begin_among(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  const uint64_t set =
      hash_of({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(ranks.front())});
  const uint64_t first = kAmong | (set >> (kCountBits + 1) << kCountBits);
  const uint64_t number = next_among_.try_emplace(first, first).first->second++;
  open_.try_emplace(number);
  return number;
}

void Meetings::end(uint64_t number) { open_.erase(number); }

void Meetings::address(uint64_t number, const std::vector<int>& ranks) {
  open_.at(number).partners.insert(ranks.begin(), ranks.end());
}

std::vector<int> Meetings::partners(uint64_t number) const {
  const auto& partners = open_.at(number).partners;
  return {partners.begin(), partners.end()};
}

bool Meetings::letter(int from, uint64_t number, ByteView text) {
  if (objections_.contains(number)) return true;
  Meeting* meeting = find(number);
  if (meeting == nullptr || (meeting->past_first && !meeting->partners.contains(from))) return false;
  meeting->letters[from].emplace_back(text.begin(), text.end());
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
