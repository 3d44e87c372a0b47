// The part of Member that talks to other ranks itself: meetings, and the ring of those who have no hub.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "team/change.h"
#include "team/member.h"

namespace pw {

using namespace wire;

namespace {

constexpr uint64_t kPatience = 2'000'000'000;      // with a rank that does not answer
constexpr uint64_t kHostPatience = 5'000'000'000;  // as long as TCP waits for one (team/socket.cpp)

}  // namespace

/// A meeting as this rank holds it.
class Member::Attended final : public Meeting {
 public:
  Attended(Member& member, uint64_t number) : member_(member), number_(number) {}
  ~Attended() override {
    const std::lock_guard lock(member_.mutex_);
    member_.meetings_.end(number_);
  }
  Letters exchange(const Letters& mine, uint64_t timeout_ns) override {
    return member_.exchange(number_, mine, timeout_ns);
  }
  void object(const Error& why) override { member_.object(number_, why); }
  void on_objection(std::function<void(const Error&)> call) override {
    const std::lock_guard lock(member_.mutex_);
    member_.meetings_.on_objection(number_, std::move(call));
  }

 private:
  Member& member_;
  const uint64_t number_;
};

std::unique_ptr<Meeting> Member::meet(Collective kind) {
  const std::lock_guard lock(mutex_);
  refuse_while_unfinished({kind, 0}, "");
  return std::make_unique<Attended>(*this, begin({kind, 0}, {}));
}

std::unique_ptr<Meeting> Member::meet_among(Collective kind, std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  refuse_while_unfinished({kind, 0}, "");
  const auto [number, conflicts] = meetings_.begin_among(kind, {ranks.begin(), ranks.end()});
  for (const Meetings::Conflict& conflict : conflicts) end_both(conflict);
  return std::make_unique<Attended>(*this, number);
}

SharedBytes Member::packed_objection(uint64_t collective, const Error& why) {
  return std::make_shared<const Bytes>(pack(Failure{collective, {why.status(), std::string(why.what())}}));
}

/// Returns once it has the letters of its partners and its own have left this process, so that it may go on
/// to leave the team.
Letters Member::exchange(uint64_t meeting, const Letters& mine, uint64_t timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  std::vector<int> partners;
  for (const auto& [rank, letter] : mine) partners.push_back(rank);
  {
    const std::lock_guard lock(mutex_);
    meetings_.address(meeting, partners);
  }
  for (const auto& [rank, letter] : mine) write_to(rank, meeting, letter, deadline);
  std::unique_lock lock(mutex_);
  std::vector<int> missing;
  const auto complete = [&] {
    missing = meetings_.missing(meeting, partners);
    return missing.empty() && not_reached(partners) < 0 && not_written_to(partners) < 0;
  };
  const auto over = [&] {
    return meetings_.ended(meeting) || ended_ || complete() || gone_without(missing) >= 0;
  };
  pw_status waited =
      wait_for_change(changed_, lock, deadline, [&] { return over() || not_reached(partners) >= 0; });
  // Who cannot be reached is leaving or has ended, as a rule, which will be known soon.
  if (waited == PW_OK && !over())
    waited = wait_for_change(changed_, lock, std::min(deadline, deadline_after(kPatience)), over);
  meetings_.check(meeting);
  if (complete()) return meetings_.take(meeting, partners);
  if (waited == PW_INTERRUPTED) throw Error(PW_INTERRUPTED, "it was interrupted by this rank's program");
  const int unreached = not_reached(partners);
  if (const int gone = gone_without(missing); gone >= 0 || (unreached >= 0 && losses_.lost(unreached)))
    throw Error(PW_PEER_LOST, format("{}", describe_loss(gone >= 0 ? gone : unreached)));
  if (unreached >= 0)
    throw Error(PW_SYSTEM,
                format("rank {} cannot connect to rank {}: {}", rank_, unreached, unreached_.at(unreached)));
  if (ended_) throw Error(PW_INTERNAL, format("rank {} no longer follows its team; its log says why", rank_));
  throw Error(PW_TIMEOUT, format("rank {} did not take part within {:.3g} s",
                                 missing.empty() ? not_written_to(partners) : missing.front(),
                                 static_cast<double>(timeout_ns) / 1e9));
}

/// Nothing is written to a rank that is lost.
void Member::write_to(int rank, uint64_t meeting, ByteView text, uint64_t deadline) {
  Letter letter;
  {
    const std::lock_guard lock(mutex_);
    letter = meetings_.letter_to(rank, meeting);
    letter.data = text;
    if (rank == rank_) meetings_.letter(rank, letter);
  }
  if (rank == rank_ || losses_.lost(rank)) return;
  const auto packed = std::make_shared<const Bytes>(pack(letter));
  while (!mesh_.send(rank, Type::letter, packed)) {
    {
      const std::lock_guard lock(mutex_);
      unreached_.erase(rank);  // of an earlier attempt
    }
    if (mesh_.link(rank, identity_of(rank).addresses, deadline)) tell(rank);
  }
  wake_.ring();
}

/// With the lock. A partner that this rank had something for when its connection ended, or -1.
int Member::not_reached(const std::vector<int>& partners) const {
  const auto found = std::ranges::find_if(partners, [&](int rank) { return unreached_.contains(rank); });
  return found == partners.end() ? -1 : *found;
}

/// A partner that what was written to it has not left for, or -1.
int Member::not_written_to(const std::vector<int>& partners) const {
  const auto found =
      std::ranges::find_if(partners, [&](int rank) { return !losses_.lost(rank) && mesh_.unsent(rank); });
  return found == partners.end() ? -1 : *found;
}

/// With the lock. One that will write no more, or -1. What a rank wrote before it left may still be read from
/// its connection.
int Member::gone_without(const std::vector<int>& missing) const {
  const auto gone = std::ranges::find_if(missing, [&](int rank) {
    const How how = losses_.how(rank);
    return how == How::died || (how != How::none && !mesh_.linked(rank));
  });
  return gone == missing.end() ? -1 : *gone;
}

/// Throws OtherObjected where another rank has objected before.
void Member::object(uint64_t meeting, const Error& why) {
  hear_out(meeting);
  const std::lock_guard lock(mutex_);
  if (!end_for_all(meeting, why)) meetings_.check(meeting);
  wake_.ring();
}

/// With the lock. False where it has been ended before.
bool Member::end_for_all(uint64_t collective, const Error& why) {
  if (!spread(collective, why)) return false;
  if (hub_alive_) channel_.queue(Type::object, packed_objection(collective, why));
  return true;
}

/// With the lock. Two ranks are in different collectives, and neither can come to its end.
void Member::end_both(const Meetings::Conflict& conflict) {
  const Error why =
      different_calls(rank_, name_of(conflict.call), conflict.other, name_of(conflict.other_call));
  end_for_all(conflict.number, why);
  end_for_all(conflict.other_number, why);
  wake_.ring();
}

/// With the lock. False when it is no news. It is on its way along all connections before anybody here can
/// act on it: hear_out() of others relies on that.
bool Member::spread(uint64_t meeting, const Error& why) {
  if (meetings_.objections().contains(meeting)) return false;
  mesh_.send_all(Type::object, packed_objection(meeting, why));
  return meetings_.object(meeting, why);
}

/// Waits until all that the partners in this meeting have said by now has been heard. What fails here may
/// have failed because a partner, which had objected or heard an objection, took back what it had offered. It
/// said so before it took anything back, and it answers a fence behind what it has said.
void Member::hear_out(uint64_t meeting) {
  std::unique_lock lock(mutex_);
  const uint64_t number = ++fence_;
  std::vector<int> asked = meetings_.partners(meeting);
  std::erase_if(asked, [&](int rank) {
    return !mesh_.send(rank, Type::fence, std::make_shared<const Bytes>(pack_fence(number)));
  });
  wake_.ring();
  wait_for_change(changed_, lock, deadline_after(kPatience), [&] {
    return ended_ || meetings_.objections().contains(meeting) || std::ranges::all_of(asked, [&](int rank) {
             return fenced_[rank] >= number || !mesh_.linked(rank);
           });
  });
}

/// What this rank knows of who is lost and which meetings failed, and others may not know.
Member::News Member::news() {
  News all;
  for (const Loss& loss : losses_.known())
    all.emplace_back(Type::lost, std::make_shared<const Bytes>(pack(loss)));
  const std::lock_guard lock(mutex_);
  for (const auto& [meeting, why] : meetings_.objections())
    all.emplace_back(Type::object, packed_objection(meeting, why));
  return all;
}

/// A rank that there is a new connection with. While there is a hub, that tells it.
void Member::tell(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (hub_alive_) return;
  }
  for (const auto& [type, payload] : news()) mesh_.send(rank, type, payload);
}

// ---- the thread ----

/// Who is heard knows the job's secret; what is no message all the same is not heeded.
void Member::hear(const Mesh::Heard& heard) try {
  switch (heard.what) {
    case Mesh::What::message:
      return hear_message(heard.rank, heard.message);
    case Mesh::What::opened:
      return tell(heard.rank);
    case Mesh::What::ended:
      return hear_end(heard);
  }
} catch (const Error& error) {
  log(LogLevel::error, format("rank {} heard from rank {}: {}", rank_, heard.rank, error.what()));
}

void Member::hear_end(const Mesh::Heard& heard) {
  const auto& [rank, what, message, how, why] = heard;
  if (how == How::ended) {
    const std::lock_guard lock(mutex_);
    unreached_[rank] = why;
    if (hub_alive_) return;  // a rank that leaves takes no more calls; the hub will say so
  }
  if (hub_alive_ && how == How::died && !losses_.lost(rank)) {
    const std::lock_guard lock(mutex_);
    channel_.queue(Type::lost, pack(Loss{static_cast<uint32_t>(rank), How::died}));
  }
  lose(rank, how);
}

void Member::hear_message(int rank, const Message& message) {
  if (message.type == Type::lost) {
    const Loss loss = parse_loss(message.payload, static_cast<uint32_t>(size_));
    if (static_cast<int>(loss.rank) != rank_) lose(static_cast<int>(loss.rank), loss.how);
  } else if (message.type == Type::object) {
    hear_objection(message);
  } else if (message.type == Type::letter) {
    hear_letter(rank, parse_letter(message.payload));
  } else if (message.type == Type::failure) {
    const Failure failure = parse_failure(message.payload);
    const std::lock_guard lock(mutex_);
    meetings_.refuse(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
  } else if (message.type == Type::fence) {
    mesh_.send(rank, Type::fenced, std::make_shared<const Bytes>(pack_fence(parse_fence(message.payload))));
  } else if (message.type == Type::fenced) {
    const std::lock_guard lock(mutex_);
    fenced_[rank] = parse_fence(message.payload);
  }
}

void Member::hear_letter(int rank, const Letter& letter) {
  const std::lock_guard lock(mutex_);
  if (const auto conflict = meetings_.conflict_with(rank, letter)) return end_both(*conflict);
  if (meetings_.letter(rank, letter)) return;
  const Refusal refusal{
      PW_INVALID_ARGUMENT,
      format("rank {} does not expect rank {} in this collective; do both make the same calls?", rank_,
             rank)};
  mesh_.send(rank, Type::failure, std::make_shared<const Bytes>(pack(Failure{letter.number, refusal})));
}

/// From the hub: an all_gather has failed, or ranks called something else where this one is in a meeting.
void Member::hear_failure(Failure failure) {
  {
    const std::lock_guard lock(mutex_);
    if (meetings_.holds(failure.sequence)) {
      spread(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
      return;
    }
  }
  answer(failure.sequence, {failure.refusal.status, std::move(failure.refusal.text), {}});
}

/// Also where the meeting is over or still to begin.
void Member::hear_objection(const Message& message) {
  const Failure failure = parse_failure(message.payload);
  const std::lock_guard lock(mutex_);
  spread(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
}

/// Without a hub, a rank hears of deaths by its connection to the next rank. One that does not answer is
/// lost, and the one behind it is the next.
void Member::follow_next() {
  {
    const std::lock_guard lock(mutex_);
    if (hub_alive_ || !welcomed_ || leaving_) return;
  }
  int next = (rank_ + 1) % size_;
  while (next != rank_ && losses_.lost(next)) next = (next + 1) % size_;
  if (next != rank_ && mesh_.link(next, identity_of(next).addresses, deadline_after(kHostPatience)))
    tell(next);
}

}  // namespace pw
