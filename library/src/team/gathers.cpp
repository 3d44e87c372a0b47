#include "team/gathers.h"

#include <algorithm>

#include "base/format.h"

namespace pw {

Gathers::Gather& Gathers::open(int rank, const wire::Contribution& part) {
  Gather& gather = gathers_[part.sequence];
  if (gather.count > 0) return gather;
  gather.first = rank;
  gather.first_bytes = part.data.size();
  gather.kind = part.kind;
  gather.given.resize(next_.size());
  if (gather.failure || !through_server(part.kind)) return gather;
  if (lengths_differ(part.kind)) {
    gather.parts.resize(next_.size());
    return gather;
  }
  gather.bytes = part.data.size();
  gather.all = wire::pack(wire::Numbered{part.sequence, {}});
  gather.all.resize(gather.all.size() + gather.bytes * next_.size());
  return gather;
}

/// Answers all ranks that have contributed. Ranks that contribute later are answered then.
void Gathers::fail(uint64_t sequence, Gather& gather, wire::Refusal refusal, std::vector<Answer>& answers) {
  gather.failure = std::move(refusal);
  gather.all = Bytes();  // `= {}` would keep the memory
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

/// Returns the reason if this part makes its collective call fail at all ranks.
std::optional<wire::Refusal> Gathers::refusal_of(const Gather& gather, int rank,
                                                 const wire::Contribution& part) const {
  const size_t bytes = part.data.size();
  const char* name = name_of(part.kind);
  if (part.kind != gather.kind) {
    const Error why = different_calls(rank, name_of(CollectiveCall{part.kind, bytes}), gather.first,
                                      name_of(CollectiveCall{gather.kind, gather.first_bytes}));
    return wire::Refusal{why.status(), why.what()};
  }
  if (!through_server(part.kind)) return {};
  const auto missing = std::ranges::find_if(gone_, [&](const auto& why) {
    return why && next_[static_cast<size_t>(&why - gone_.data())] <= part.sequence;
  });
  if (missing != gone_.end())
    return wire::Refusal{(*missing)->status, format("{}: {}", name, (*missing)->text)};
  if (lengths_differ(part.kind)) {
    if (gather.bytes + bytes <= wire::kMaxResult) return {};
    return wire::Refusal{PW_INVALID_ARGUMENT,
                         format("{}: more than {} bytes in all", name, wire::kMaxResult)};
  }
  if (bytes == gather.bytes) return {};
  return wire::Refusal{PW_INVALID_ARGUMENT,
                       format("{}: rank {} gave {} bytes and rank {} gave {}; all must give the "
                              "same number",
                              name, rank, bytes, gather.first, gather.bytes)};
}

void Gathers::keep(Gather& gather, size_t index, ByteView data) {
  if (lengths_differ(gather.kind)) {
    gather.bytes += data.size();
    gather.parts[index].assign(data.begin(), data.end());
  } else {
    const size_t place = gather.all.size() - gather.bytes * (gather.given.size() - index);
    std::ranges::copy(data, gather.all.begin() + static_cast<ptrdiff_t>(place));
  }
}

std::vector<Gathers::Answer> Gathers::contribute(int rank, const wire::Contribution& part) {
  const auto index = static_cast<size_t>(rank);
  if (part.sequence != next_[index])
    throw Error(PW_INVALID_ARGUMENT, format("rank {} gives to collective {}; its next one is {}", rank,
                                            part.sequence, next_[index]));
  ++next_[index];
  Gather& gather = open(rank, part);
  std::vector<Answer> answers;
  gather.given[index] = true;
  ++gather.count;
  if (gather.failure) {
    answers.push_back({rank, false, nullptr, {part.sequence, *gather.failure}});
  } else if (auto refusal = refusal_of(gather, rank, part)) {
    fail(part.sequence, gather, std::move(*refusal), answers);
  } else if (through_server(part.kind)) {
    keep(gather, index, part.data);
    if (gather.count == gather.given.size()) complete(part.sequence, gather, answers);
  }
  if (over(part.sequence, gather)) gathers_.erase(part.sequence);
  return answers;
}

void Gathers::complete(uint64_t sequence, Gather& gather, std::vector<Answer>& answers) {
  if (lengths_differ(gather.kind)) join_parts(sequence, gather);
  const auto result = std::make_shared<const Bytes>(std::move(gather.all));
  for (size_t rank = 0; rank < gather.given.size(); ++rank)
    if (!gone_[rank]) answers.push_back({static_cast<int>(rank), true, result, {}});
}

void Gathers::join_parts(uint64_t sequence, Gather& gather) {
  ByteWriter all;
  all.put(wire::pack(wire::Numbered{sequence, {}}));
  for (const Bytes& part : gather.parts) {
    all.put_sized(part);
  }
  gather.all = all.take();
}

std::vector<Gathers::Answer> Gathers::abort(const wire::Failure& failure) {
  std::vector<Answer> answers;
  const uint64_t sequence = failure.sequence;
  if (std::ranges::none_of(next_, [&](uint64_t next) { return next <= sequence; })) return answers;
  Gather& gather = gathers_[sequence];
  if (gather.failure) return answers;
  gather.given.resize(next_.size());
  if (gather.count > 0 && through_server(gather.kind))
    fail(sequence, gather, failure.refusal, answers);
  else  // the bootstrap server passes it on to ranks that talk to their partners
    gather.failure = failure.refusal;
  return answers;
}

std::vector<Gathers::Answer> Gathers::lose(int rank, const std::string& why, pw_status status) {
  const auto index = static_cast<size_t>(rank);
  gone_[index] = wire::Refusal{status, why};
  std::vector<Answer> answers;
  for (auto each = gathers_.begin(); each != gathers_.end();) {
    auto& [sequence, gather] = *each;
    if (!gather.given[index] && !gather.failure && through_server(gather.kind))
      fail(sequence, gather, {status, format("{}: {}", name_of(gather.kind), why)}, answers);
    each = over(sequence, gather) ? gathers_.erase(each) : std::next(each);
  }
  return answers;
}

}  // namespace pw
