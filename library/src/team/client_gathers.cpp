// The part of BootstrapClient for collective calls whose data goes through the bootstrap server.
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "team/bootstrap_client.h"
#include "team/change.h"
#include "trace/operation.h"

namespace pw {

using namespace wire;

namespace {

Digest digest_of(std::span<const std::byte> bytes) { return siphash(Secret{}, bytes); }

}  // namespace

std::vector<std::byte> BootstrapClient::all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) {
  if (mine.size() > kMaxContribution || mine.size() * static_cast<size_t>(size_) > kMaxResult)
    throw Error(PW_INVALID_ARGUMENT,
                format("all_gather of {} bytes by {} ranks; at most {} bytes a rank and {} "
                       "in all are allowed",
                       mine.size(), size_, kMaxContribution, kMaxResult));
  Bytes all = gather(mine.empty() ? CallKind::barrier : CallKind::all_gather, mine, timeout_ns);
  if (all.size() != mine.size() * static_cast<size_t>(size_))
    throw Error(PW_INTERNAL,
                format("all_gather returned {} bytes for {} ranks of {}", all.size(), size_, mine.size()));
  return all;
}

std::vector<std::vector<std::byte>> BootstrapClient::all_gather_parts(CallKind kind,
                                                                      std::span<const std::byte> mine,
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

/// Call with the lock held. Counts the call and reports it to the server, which compares the calls of all
/// ranks. If this rank knows that the collective call was aborted, it sends the abort first, so that the
/// server cannot complete the collective call.
uint64_t BootstrapClient::begin(const CollectiveCall& call, std::span<const std::byte> mine) {
  const auto [number, conflicts] = calls_.begin(call);
  if (server_alive_ && !abandoned_) {
    if (const auto known = calls_.aborts().find(number); known != calls_.aborts().end())
      channel_.queue(Type::abort, packed_abort(number, known->second));
    channel_.queue(Type::contribute, pack(Contribution{number, call.kind, mine}));
    wakeup_.notify();
  }
  for (const CallLog::Conflict& conflict : conflicts) end_both(conflict);
  return number;
}

/// Call with the lock held. An all_gather that timed out is under way as long as there is a server. Throws if
/// another call is made meanwhile.
void BootstrapClient::refuse_while_unfinished(const CollectiveCall& call, const char* addition) {
  if (!unfinished_) return;
  if (server_alive_)
    throw Error(PW_INVALID_ARGUMENT,
                format("rank {} calls {}{} after its {} timed out, which the other ranks may have "
                       "finished with it; repeat that one with the same bytes first, or make a new team",
                       rank_, name_of(call), addition, name_of(unfinished_->call)));
  unfinished_.reset();
  under_way_.reset();
  answer_.reset();
}

/// Call with the lock held. Returns whether the call repeats one that timed out; the server then has this
/// rank's part.
bool BootstrapClient::resumes(const CollectiveCall& call, std::span<const std::byte> mine) {
  const bool same_call =
      unfinished_ && call.kind == unfinished_->call.kind && call.bytes == unfinished_->call.bytes;
  if (same_call && digest_of(mine) == unfinished_->digest) return true;
  refuse_while_unfinished(call, same_call ? " with other bytes" : "");
  return false;
}

Bytes BootstrapClient::gather(CallKind kind, std::span<const std::byte> mine, uint64_t timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  const CollectiveCall call{kind, mine.size()};
  const char* name = name_of(kind);
  std::optional<trace::Operation> traced;
  if (trace::recording()) {
    traced.emplace(kind == CallKind::barrier ? name : "all_gather", PW_TRACE_COLLECTIVE);
    traced->by(trace_name_);
  }
  const auto late = [&] {
    return Error(PW_TIMEOUT, format("{}: not every one of the {} ranks took part within {:.3g} s", name,
                                    size_, static_cast<double>(timeout_ns) / 1e9));
  };
  std::unique_lock lock(mutex_);
  const pw_status turn =
      abandoned_ ? PW_INTERRUPTED : wait_for_change(changed_, lock, deadline, [this] { return !gathering_; });
  if (turn == PW_TIMEOUT) throw late();
  if (turn != PW_OK) {
    abandon();
    begin(call, {});  // the other ranks count the call, too
    throw interrupted();
  }
  gathering_ = true;
  struct EndOfTurn {
    BootstrapClient& client;
    ~EndOfTurn() {
      client.gathering_ = false;
      client.changed_.notify_all();
    }
  } end_of_turn{*this};
  if (!resumes(call, mine)) under_way_ = begin(call, mine);
  if (traced) traced->of(mine.size(), static_cast<int32_t>(*under_way_ & 0x7fffffff));
  if (wait_for_change(changed_, lock, deadline, [this] { return answer_ || !server_alive_; }) ==
      PW_INTERRUPTED) {
    abandon();
    throw interrupted();
  }
  if (!answer_ && server_alive_) {
    if (!unfinished_) unfinished_ = Unfinished{call, digest_of(mine)};
    throw late();
  }
  std::optional<Answer> answer = std::exchange(answer_, std::nullopt);
  unfinished_.reset();
  under_way_.reset();
  if (!answer) throw Error(PW_PEER_LOST, format("{}: {}", name, describe_loss(0)));
  if (answer->status != PW_OK) throw Error(answer->status, answer->text);
  return std::move(answer->data);
}

/// Call with the lock held. Tells the server that this rank contributes no more, so that the others do not
/// wait for it.
void BootstrapClient::abandon() {
  if (std::exchange(abandoned_, true) || !server_alive_) return;
  channel_.queue(Type::abandon);
  wakeup_.notify();
}

Error BootstrapClient::interrupted() const {
  return {PW_INTERRUPTED, format("rank {} was interrupted in a collective, which ends the collectives of its "
                                 "team; make a new team for more",
                                 rank_)};
}

}  // namespace pw
