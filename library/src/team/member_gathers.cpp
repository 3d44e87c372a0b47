// The part of Member that takes part in the collectives of the hub.
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "team/change.h"
#include "team/member.h"
#include "trace/operation.h"

namespace pw {

using namespace wire;

namespace {

Digest digest_of(std::span<const std::byte> bytes) { return siphash(Secret{}, bytes); }

}  // namespace

std::vector<std::byte> Member::all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) {
  if (mine.size() > kMaxContribution || mine.size() * static_cast<size_t>(size_) > kMaxResult)
    throw Error(PW_INVALID_ARGUMENT,
                format("all_gather of {} bytes by {} ranks; at most {} bytes a rank and {} "
                       "in all are allowed",
                       mine.size(), size_, kMaxContribution, kMaxResult));
  Bytes all = gather(mine.empty() ? Collective::barrier : Collective::all_gather, mine, timeout_ns);
  if (all.size() != mine.size() * static_cast<size_t>(size_))
    throw Error(PW_INTERNAL,
                format("all_gather returned {} bytes for {} ranks of {}", all.size(), size_, mine.size()));
  return all;
}

std::vector<std::vector<std::byte>> Member::all_gather_parts(Collective kind, std::span<const std::byte> mine,
                                                             uint64_t timeout_ns) {
  if (mine.size() > kMaxContribution)
    throw Error(PW_INVALID_ARGUMENT, format("all_gather of {} bytes; at most {} a rank are allowed",
                                            mine.size(), kMaxContribution));
  const Bytes all = gather(kind, mine, timeout_ns);
  ByteReader reader(all, "what all_gather returned");
  std::vector<std::vector<std::byte>> parts;
  for (int rank = 0; rank < size_; ++rank) {
    const ByteView part = reader.take_sized();
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

/// With the lock. Sends this rank's part, unless the call repeats one that timed out and has sent it.
void Member::begin_or_resume(Collective kind, std::span<const std::byte> mine) {
  if (!unfinished_) {
    channel_.queue(Type::contribute, pack(Contribution{sequence_, kind, mine}));
    wake_.ring();
    return;
  }
  const auto& [its_kind, its_bytes, its_digest] = *unfinished_;
  if (kind == its_kind && mine.size() == its_bytes && digest_of(mine) == its_digest) return;
  const bool same_call = kind == its_kind && mine.size() == its_bytes;
  throw Error(PW_INVALID_ARGUMENT,
              format("rank {} calls {}{} after its {} timed out, which the other ranks may have "
                     "finished with it; repeat that one with the same bytes first, or make a new team",
                     rank_, call_of(kind, mine.size()), same_call ? " with other bytes" : "",
                     call_of(its_kind, its_bytes)));
}

Bytes Member::gather(Collective kind, std::span<const std::byte> mine, uint64_t timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  const char* name = name_of(kind);
  std::optional<trace::Operation> traced;
  if (trace::recording()) {
    traced.emplace(kind == Collective::barrier ? name : "all_gather", PW_TRACE_COLLECTIVE);
    traced->by(trace_name_);
  }
  const auto late = [&] {
    return Error(PW_TIMEOUT, format("{}: not every one of the {} ranks took part within {:.3g} s", name,
                                    size_, static_cast<double>(timeout_ns) / 1e9));
  };
  std::unique_lock lock(mutex_);
  const auto give_up = [&](pw_status waited) {
    if (waited == PW_TIMEOUT) throw late();
    if (waited != PW_OK) interrupted();
  };
  if (abandoned_) interrupted();
  give_up(wait_for_change(changed_, lock, deadline, [this] { return !gathering_; }));
  gathering_ = true;
  if (traced) traced->of(mine.size(), static_cast<int32_t>(sequence_ & 0x7fffffff));
  struct EndOfTurn {
    Member& member;
    ~EndOfTurn() {
      member.gathering_ = false;
      member.changed_.notify_all();
    }
  } end_of_turn{*this};
  if (hub_alive_ || unfinished_) {
    begin_or_resume(kind, mine);
    if (wait_for_change(changed_, lock, deadline, [this] { return answer_ || !hub_alive_; }) ==
        PW_INTERRUPTED)
      interrupted();
  }
  if (!answer_ && !hub_alive_) throw Error(PW_PEER_LOST, format("{}: {}", name, describe_loss(0)));
  if (!answer_) {
    if (!unfinished_) unfinished_ = Unfinished{kind, mine.size(), digest_of(mine)};
    throw late();
  }
  Answer answer = std::move(*answer_);
  answer_.reset();
  unfinished_.reset();
  ++sequence_;
  if (answer.status != PW_OK) throw Error(answer.status, answer.text);
  return std::move(answer.data);
}

/// With the lock. The others must not wait for what this rank will not give.
void Member::interrupted() {
  if (!std::exchange(abandoned_, true) && hub_alive_) {
    channel_.queue(Type::abandon);
    wake_.ring();
  }
  throw Error(PW_INTERRUPTED,
              format("rank {} was interrupted in a collective, which ends the collectives of its "
                     "team; make a new team for more",
                     rank_));
}

}  // namespace pw
