// The part of BootstrapClient that talks to other ranks: exchanges, and the ring of ranks after the server
// has ended.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "team/bootstrap_client.h"
#include "team/change.h"

namespace pw {

using namespace wire;

namespace {

constexpr uint64_t kAnswerTime = 2'000'000'000;      // ns: how long to wait for a rank that does not answer
constexpr uint64_t kHostAnswerTime = 5'000'000'000;  // ns: as long as TCP waits for a host that does not
                                                     // answer (team/socket.cpp)

}  // namespace

/// This rank's end of an exchange.
class BootstrapClient::ClientExchange final : public Exchange {
 public:
  ClientExchange(BootstrapClient& client, uint64_t number) : client_(client), number_(number) {}
  ~ClientExchange() override {
    const std::lock_guard lock(client_.mutex_);
    client_.calls_.end(number_);
  }
  PeerMessages exchange(const PeerMessages& mine, uint64_t timeout_ns) override {
    return client_.exchange(number_, mine, timeout_ns);
  }
  void abort(const Error& why) override { client_.abort(number_, why); }
  void on_abort(std::function<void(const Error&)> call) override {
    const std::lock_guard lock(client_.mutex_);
    client_.calls_.on_abort(number_, std::move(call));
  }

 private:
  BootstrapClient& client_;
  const uint64_t number_;
};

std::unique_ptr<Exchange> BootstrapClient::begin_exchange(CallKind kind) {
  const std::lock_guard lock(mutex_);
  refuse_while_unfinished({kind, 0}, "");
  return std::make_unique<ClientExchange>(*this, begin({kind, 0}, {}));
}

std::unique_ptr<Exchange> BootstrapClient::begin_exchange_among(CallKind kind, std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  refuse_while_unfinished({kind, 0}, "");
  const auto [number, conflicts] = calls_.begin_among(kind, {ranks.begin(), ranks.end()});
  for (const CallLog::Conflict& conflict : conflicts) end_both(conflict);
  return std::make_unique<ClientExchange>(*this, number);
}

SharedBytes BootstrapClient::packed_abort(uint64_t collective, const Error& why) {
  return std::make_shared<const Bytes>(pack(Failure{collective, {why.status(), std::string(why.what())}}));
}

/// Returns once the partners' messages have arrived and this rank's have left the process, so that the rank
/// may then leave the team.
PeerMessages BootstrapClient::exchange(uint64_t number, const PeerMessages& mine, uint64_t timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  std::vector<int> partners;
  for (const auto& [rank, message] : mine) partners.push_back(rank);
  {
    const std::lock_guard lock(mutex_);
    calls_.address(number, partners);
  }
  for (const auto& [rank, message] : mine) write_to(rank, number, message, deadline);
  std::unique_lock lock(mutex_);
  std::vector<int> missing;
  const auto complete = [&] {
    missing = calls_.missing(number, partners);
    return missing.empty() && unreachable_among(partners) < 0 && unsent_among(partners) < 0;
  };
  const auto over = [&] { return calls_.ended(number) || ended_ || complete() || lost_among(missing) >= 0; };
  pw_status waited =
      wait_for_change(changed_, lock, deadline, [&] { return over() || unreachable_among(partners) >= 0; });
  // A rank that cannot be reached is usually leaving or has ended. A report of that will arrive soon.
  if (waited == PW_OK && !over())
    waited = wait_for_change(changed_, lock, std::min(deadline, deadline_after(kAnswerTime)), over);
  calls_.check(number);
  if (complete()) return calls_.take(number, partners);
  if (waited == PW_INTERRUPTED) throw Error(PW_INTERRUPTED, "it was interrupted by this rank's program");
  const int unreached = unreachable_among(partners);
  if (const int gone = lost_among(missing); gone >= 0 || (unreached >= 0 && losses_.lost(unreached)))
    throw Error(PW_PEER_LOST, format("{}", describe_loss(gone >= 0 ? gone : unreached)));
  if (unreached >= 0)
    throw Error(PW_SYSTEM,
                format("rank {} cannot connect to rank {}: {}", rank_, unreached, unreached_.at(unreached)));
  if (ended_) throw Error(PW_INTERNAL, format("rank {} no longer follows its team; its log says why", rank_));
  throw Error(PW_TIMEOUT, format("rank {} did not take part within {:.3g} s",
                                 missing.empty() ? unsent_among(partners) : missing.front(),
                                 static_cast<double>(timeout_ns) / 1e9));
}

/// Sends a message; does nothing if the rank is lost.
void BootstrapClient::write_to(int rank, uint64_t number, ByteView text, uint64_t deadline) {
  ExchangePart part;
  {
    const std::lock_guard lock(mutex_);
    part = calls_.header_to(rank, number);
    part.data = text;
    if (rank == rank_) calls_.accept(rank, part);
  }
  if (rank == rank_ || losses_.lost(rank)) return;
  const auto packed = std::make_shared<const Bytes>(pack(part));
  while (!peers_.send(rank, Type::exchange, packed)) {
    {
      const std::lock_guard lock(mutex_);
      unreached_.erase(rank);  // recorded by an earlier attempt
    }
    if (peers_.connect(rank, identity_of(rank).addresses, deadline)) send_reports(rank);
  }
  wakeup_.notify();
}

/// Call with the lock held. Returns a partner whose connection ended with messages queued for it, or -1.
int BootstrapClient::unreachable_among(const std::vector<int>& partners) const {
  const auto position = std::ranges::find_if(partners, [&](int rank) { return unreached_.contains(rank); });
  return position == partners.end() ? -1 : *position;
}

/// Returns a partner for which a message has not left this process yet, or -1.
int BootstrapClient::unsent_among(const std::vector<int>& partners) const {
  const auto position =
      std::ranges::find_if(partners, [&](int rank) { return !losses_.lost(rank) && peers_.unsent(rank); });
  return position == partners.end() ? -1 : *position;
}

/// Call with the lock held. Returns a rank that will send no more, or -1. Messages that a rank sent before it
/// left may still be in its connection.
int BootstrapClient::lost_among(const std::vector<int>& missing) const {
  const auto gone = std::ranges::find_if(missing, [&](int rank) {
    const How how = losses_.how(rank);
    return how == How::died || (how != How::none && !peers_.connected(rank));
  });
  return gone == missing.end() ? -1 : *gone;
}

/// Throws AbortedElsewhere if another rank has aborted before.
void BootstrapClient::abort(uint64_t number, const Error& why) {
  drain_partners(number);
  const std::lock_guard lock(mutex_);
  if (!end_for_all(number, why)) calls_.check(number);
  wakeup_.notify();
}

/// Call with the lock held. Returns false if the collective call had been ended before.
bool BootstrapClient::end_for_all(uint64_t collective, const Error& why) {
  if (!broadcast_abort(collective, why)) return false;
  if (server_alive_) channel_.queue(Type::abort, packed_abort(collective, why));
  return true;
}

/// Call with the lock held. Two ranks are in different collective calls, so neither can complete; ends both.
void BootstrapClient::end_both(const CallLog::Conflict& conflict) {
  const Error why =
      different_calls(rank_, name_of(conflict.call), conflict.other, name_of(conflict.other_call));
  end_for_all(conflict.number, why);
  end_for_all(conflict.other_number, why);
  wakeup_.notify();
}

/// Call with the lock held. Returns false if the abort is known already. The abort is sent along all
/// connections before anything here acts on it; drain_partners() of other ranks relies on that order.
bool BootstrapClient::broadcast_abort(uint64_t number, const Error& why) {
  if (calls_.aborts().contains(number)) return false;
  peers_.send_all(Type::abort, packed_abort(number, why));
  return calls_.abort(number, why);
}

/// Waits until everything that the partners have sent so far was handled. This rank may have failed because a
/// partner aborted, or learned of an abort, and then closed what it had offered. That partner sent the abort
/// first, so the abort arrives before the partner's answer to a fence.
void BootstrapClient::drain_partners(uint64_t number) {
  std::unique_lock lock(mutex_);
  const uint64_t fence = ++fence_;
  std::vector<int> partners = calls_.partners(number);
  std::erase_if(partners, [&](int rank) {
    return !peers_.send(rank, Type::fence, std::make_shared<const Bytes>(pack_fence(fence)));
  });
  wakeup_.notify();
  wait_for_change(changed_, lock, deadline_after(kAnswerTime), [&] {
    return ended_ || calls_.aborts().contains(number) || std::ranges::all_of(partners, [&](int rank) {
             return fenced_[rank] >= fence || !peers_.connected(rank);
           });
  });
}

/// Returns the lost ranks and aborted exchanges that this rank knows of, which others may not know.
BootstrapClient::Reports BootstrapClient::reports() {
  Reports all;
  for (const Loss& loss : losses_.known())
    all.emplace_back(Type::lost, std::make_shared<const Bytes>(pack(loss)));
  const std::lock_guard lock(mutex_);
  for (const auto& [number, why] : calls_.aborts()) all.emplace_back(Type::abort, packed_abort(number, why));
  return all;
}

/// Sends the reports on a new connection. While there is a server, the server sends them.
void BootstrapClient::send_reports(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (server_alive_) return;
  }
  for (const auto& [type, payload] : reports()) peers_.send(rank, type, payload);
}

// ---- the thread ----

/// The sender knows the job's secret, but a malformed message is still logged and dropped.
void BootstrapClient::handle_event(const PeerConnections::Event& event) try {
  switch (event.kind) {
    case PeerConnections::EventKind::message:
      return handle_message(event.rank, event.message);
    case PeerConnections::EventKind::opened:
      return send_reports(event.rank);
    case PeerConnections::EventKind::ended:
      return handle_end(event);
  }
} catch (const Error& error) {
  log(LogLevel::error,
      format("rank {} cannot use a message from rank {}: {}", rank_, event.rank, error.what()));
}

void BootstrapClient::handle_end(const PeerConnections::Event& event) {
  const auto& [rank, kind, message, how, why] = event;
  if (how == How::ended) {
    const std::lock_guard lock(mutex_);
    unreached_[rank] = why;
    if (server_alive_) return;  // a leaving rank accepts no more connections, and the server will report it
  }
  if (server_alive_ && how == How::died && !losses_.lost(rank)) {
    const std::lock_guard lock(mutex_);
    channel_.queue(Type::lost, pack(Loss{static_cast<uint32_t>(rank), How::died}));
  }
  lose(rank, how);
}

void BootstrapClient::handle_message(int rank, const Message& message) {
  if (message.type == Type::lost) {
    const Loss loss = parse_loss(message.payload, static_cast<uint32_t>(size_));
    if (static_cast<int>(loss.rank) != rank_) lose(static_cast<int>(loss.rank), loss.how);
  } else if (message.type == Type::abort) {
    handle_abort(message);
  } else if (message.type == Type::exchange) {
    handle_part(rank, parse_exchange_part(message.payload));
  } else if (message.type == Type::failure) {
    const Failure failure = parse_failure(message.payload);
    const std::lock_guard lock(mutex_);
    calls_.refuse(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
  } else if (message.type == Type::fence) {
    peers_.send(rank, Type::fenced, std::make_shared<const Bytes>(pack_fence(parse_fence(message.payload))));
  } else if (message.type == Type::fenced) {
    const std::lock_guard lock(mutex_);
    fenced_[rank] = parse_fence(message.payload);
  }
}

void BootstrapClient::handle_part(int rank, const ExchangePart& part) {
  const std::lock_guard lock(mutex_);
  if (const auto conflict = calls_.conflict_with(rank, part)) return end_both(*conflict);
  if (calls_.accept(rank, part)) return;
  const Refusal refusal{
      PW_INVALID_ARGUMENT,
      format("rank {} does not expect rank {} in this collective; do both make the same calls?", rank_,
             rank)};
  peers_.send(rank, Type::failure, std::make_shared<const Bytes>(pack(Failure{part.number, refusal})));
}

/// Handles a failure from the server: an all_gather has failed, or other ranks called another collective call
/// while this rank is in an exchange.
void BootstrapClient::handle_failure(Failure failure) {
  {
    const std::lock_guard lock(mutex_);
    if (calls_.holds(failure.sequence)) {
      broadcast_abort(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
      return;
    }
  }
  answer(failure.sequence, {failure.refusal.status, std::move(failure.refusal.text), {}});
}

/// Handles an abort. The exchange may be over here, or still to begin.
void BootstrapClient::handle_abort(const Message& message) {
  const Failure failure = parse_failure(message.payload);
  const std::lock_guard lock(mutex_);
  broadcast_abort(failure.sequence, Error(failure.refusal.status, failure.refusal.text));
}

/// Without a server, a rank notices a death by its connection to the next rank. If the next rank is lost, the
/// one after it becomes the next.
void BootstrapClient::follow_next() {
  {
    const std::lock_guard lock(mutex_);
    if (server_alive_ || !welcomed_ || leaving_) return;
  }
  int next = (rank_ + 1) % size_;
  while (next != rank_ && losses_.lost(next)) next = (next + 1) % size_;
  if (next != rank_ && peers_.connect(next, identity_of(next).addresses, deadline_after(kHostAnswerTime)))
    send_reports(next);
}

}  // namespace pw
