// The part of Member that takes part in the collectives of the hub.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "team/change.h"
#include "team/member.h"
#include "trace/operation.h"

namespace pw {

using namespace wire;

namespace {

/// What the hub says of an all_gather, in the words of who called barrier.
std::string of_barrier(const std::string& text) {
  constexpr std::string_view kGather = "peerway: all_gather: ";
  return text.starts_with(kGather) ? "peerway: barrier: " + text.substr(kGather.size()) : text;
}

}  // namespace

std::vector<std::byte> Member::all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) {
  if (mine.size() > kMaxContribution || mine.size() * static_cast<size_t>(size_) > kMaxResult)
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: all_gather of {} bytes by {} ranks; at most {} bytes a rank and {} "
                       "in all are allowed",
                       mine.size(), size_, kMaxContribution, kMaxResult));
  Bytes all = gather(Type::contribute, mine, timeout_ns);
  if (all.size() != mine.size() * static_cast<size_t>(size_))
    throw Error(PW_INTERNAL, format("peerway: all_gather returned {} bytes for {} ranks of {}", all.size(),
                                    size_, mine.size()));
  return all;
}

std::vector<std::vector<std::byte>> Member::all_gather_parts(std::span<const std::byte> mine,
                                                             uint64_t timeout_ns) {
  if (mine.size() > kMaxContribution)
    throw Error(PW_INVALID_ARGUMENT, format("peerway: all_gather of {} bytes; at most {} a rank are allowed",
                                            mine.size(), kMaxContribution));
  const Bytes all = gather(Type::contribute_part, mine, timeout_ns);
  ByteReader reader(all, "what all_gather returned");
  std::vector<std::vector<std::byte>> parts;
  for (int rank = 0; rank < size_; ++rank) {
    const ByteView part = reader.take_sized();
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

Bytes Member::gather(Type type, std::span<const std::byte> mine, uint64_t timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  const bool barrier = type == Type::contribute && mine.empty();
  const char* name = barrier ? "barrier" : "all_gather";
  std::optional<trace::Operation> traced;
  if (trace::recording()) {
    traced.emplace(name, PW_TRACE_COLLECTIVE);
    traced->by(trace_name_);
  }
  const auto late = [&] {
    return Error(PW_TIMEOUT, format("peerway: {}: not every one of the {} ranks took part within {:.3g} s",
                                    name, size_, static_cast<double>(timeout_ns) / 1e9));
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
  if (hub_alive_) {
    channel_.queue(type, pack(Numbered{sequence_, mine}));
    wake_.ring();
    if (wait_for_change(changed_, lock, deadline, [this] { return answer_ || !hub_alive_; }) ==
        PW_INTERRUPTED) {
      ++sequence_;
      interrupted();
    }
  }
  // A late answer to this one will carry an old number and be dropped.
  ++sequence_;
  if (!answer_ && !hub_alive_) throw Error(PW_PEER_LOST, format("peerway: {}: {}", name, describe_loss(0)));
  if (!answer_) throw late();
  Answer answer = std::move(*answer_);
  answer_.reset();
  if (answer.status != PW_OK) throw Error(answer.status, barrier ? of_barrier(answer.text) : answer.text);
  return std::move(answer.data);
}

/// With the lock. The others must not wait for what this rank will not give.
void Member::interrupted() {
  if (!std::exchange(abandoned_, true) && hub_alive_) {
    channel_.queue(Type::abandon);
    wake_.ring();
  }
  throw Error(PW_INTERRUPTED,
              format("peerway: rank {} was interrupted in a collective, which ends the collectives of its "
                     "team; make a new team for more",
                     rank_));
}

}  // namespace pw
