#include "team/gathers.h"

#include <algorithm>

#include "base/format.h"

namespace pw {

Gathers::Gather& Gathers::open(int rank, const wire::Numbered& part, bool varied) {
  const auto [place, fresh] = gathers_.try_emplace(part.sequence);
  Gather& gather = place->second;
  if (!fresh) return gather;
  gather.first = rank;
  gather.varied = varied;
  gather.bytes = varied ? 0 : part.data.size();
  if (varied) gather.parts.resize(next_.size());
  gather.given.resize(next_.size());
  gather.all = wire::pack(wire::Numbered{part.sequence, {}});
  gather.all.resize(gather.all.size() + gather.bytes * next_.size());
  return gather;
}

/// Answers all who have given; those who give later are answered as they come.
void Gathers::fail(uint64_t sequence, Gather& gather, wire::Refusal refusal, std::vector<Answer>& answers) {
  gather.failure = std::move(refusal);
  gather.all = Bytes();  // from {} they would keep their memory
  gather.parts = std::vector<Bytes>();
  for (size_t rank = 0; rank < gather.given.size(); ++rank)
    if (gather.given[rank] && !gone_[rank])
      answers.push_back({static_cast<int>(rank), false, nullptr, {sequence, *gather.failure}});
}

bool Gathers::over(uint64_t sequence, const Gather& gather) const {
  for (size_t rank = 0; rank < gather.given.size(); ++rank)
    if (!gather.given[rank] && !(gone_[rank] && next_[rank] <= sequence)) return false;
  return true;
}

std::vector<Gathers::Answer> Gathers::contribute(int rank, const wire::Numbered& part, bool varied) {
  const auto index = static_cast<size_t>(rank);
  if (part.sequence != next_[index])
    throw Error(PW_INVALID_ARGUMENT, format("peerway: rank {} gives to all_gather {}; its next one is {}",
                                            rank, part.sequence, next_[index]));
  ++next_[index];
  Gather& gather = open(rank, part, varied);
  std::vector<Answer> answers;
  gather.given[index] = true;
  ++gather.count;
  const auto missing = std::ranges::find_if(gone_, [&](const auto& why) {
    return why && next_[static_cast<size_t>(&why - gone_.data())] <= part.sequence;
  });
  if (gather.failure) {
    answers.push_back({rank, false, nullptr, {part.sequence, *gather.failure}});
  } else if (missing != gone_.end()) {
    fail(part.sequence, gather, {(*missing)->status, format("peerway: all_gather: {}", (*missing)->text)},
         answers);
  } else if (varied != gather.varied) {
    fail(part.sequence, gather,
         {PW_INVALID_ARGUMENT,
          format("peerway: rank {} and rank {} are in different collectives of the team; all "
                 "ranks must call the same ones in the same order",
                 rank, gather.first)},
         answers);
  } else if (varied && gather.bytes + part.data.size() > wire::kMaxResult) {
    fail(part.sequence, gather,
         {PW_INVALID_ARGUMENT, format("peerway: all_gather: more than {} bytes in all", wire::kMaxResult)},
         answers);
  } else if (!varied && part.data.size() != gather.bytes) {
    fail(part.sequence, gather,
         {PW_INVALID_ARGUMENT,
          format("peerway: all_gather: rank {} gave {} bytes and rank {} gave {}; all must give "
                 "the same number",
                 rank, part.data.size(), gather.first, gather.bytes)},
         answers);
  } else {
    if (varied) {
      gather.bytes += part.data.size();
      gather.parts[index].assign(part.data.begin(), part.data.end());
    } else {
      const size_t place = gather.all.size() - gather.bytes * (gather.given.size() - index);
      std::ranges::copy(part.data, gather.all.begin() + static_cast<ptrdiff_t>(place));
    }
    if (gather.count == gather.given.size()) {
      if (varied) join_parts(part.sequence, gather);
      const auto result = std::make_shared<const Bytes>(std::move(gather.all));
      for (size_t each = 0; each < gather.given.size(); ++each)
        if (!gone_[each]) answers.push_back({static_cast<int>(each), true, result, {}});
    }
  }
  if (over(part.sequence, gather)) gathers_.erase(part.sequence);
  return answers;
}

void Gathers::join_parts(uint64_t sequence, Gather& gather) {
  ByteWriter all;
  all.put(wire::pack(wire::Numbered{sequence, {}}));
  for (const Bytes& part : gather.parts) {
    all.put_sized(part);
  }
  gather.all = all.take();
}

std::vector<Gathers::Answer> Gathers::lose(int rank, const std::string& why, pw_status status) {
  const auto index = static_cast<size_t>(rank);
  gone_[index] = wire::Refusal{status, why};
  std::vector<Answer> answers;
  for (auto each = gathers_.begin(); each != gathers_.end();) {
    auto& [sequence, gather] = *each;
    if (!gather.given[index] && !gather.failure)
      fail(sequence, gather, {status, format("peerway: all_gather: {}", why)}, answers);
    each = over(sequence, gather) ? gathers_.erase(each) : std::next(each);
  }
  return answers;
}

}  // namespace pw
