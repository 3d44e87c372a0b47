// A team: rank, size, collective calls out of band, and which ranks are lost. The layers above use only this
// interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/forked.h"
#include "base/secret.h"
#include "base/status.h"
#include "peerway/peerway.h"
#include "team/call_kinds.h"

namespace pw {

/// Messages to or from other ranks: the other rank and the bytes.
using PeerMessages = std::vector<std::pair<int, std::vector<std::byte>>>;

/// Thrown if another rank has aborted the exchange. All ranks know of the abort.
class AbortedElsewhere : public Error {
 public:
  using Error::Error;
};

/// A collective call in which each rank talks only to its partners, over direct connections; most are run by
/// run_exchange() in team/agreement.h. This rank learns of aborts as long as the object lives.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// One round: sends each partner its message, and returns their messages in rank order. The first round
  /// also returns messages of other ranks that count this one as a partner. The n-th message to a rank is
  /// matched with its n-th message to this rank. Throws AbortedElsewhere, or Error (PW_TIMEOUT, PW_PEER_LOST,
  /// PW_INTERRUPTED; PW_INVALID_ARGUMENT if a partner does not take part).
  virtual PeerMessages exchange(const PeerMessages& mine, uint64_t timeout_ns) = 0;

  /// Ends the exchange at all ranks, partners or not. First handles what partners have sent so far. If
  /// another rank has aborted before, throws AbortedElsewhere, because that may be why this rank cannot go
  /// on.
  virtual void abort(const Error& why) = 0;

  /// Calls `call` once, from the team's own thread, if another rank aborts, even after this rank has received
  /// all its messages. `call` must not block.
  virtual void on_abort(std::function<void(const Error&)> call) = 0;
};

/// The ranks of a job, and what they do together before they can move data. (peerway::Team of the C++
/// interface owns a handle of it.) All ranks make the same collective calls in the same order: all_gathers
/// and exchanges are counted together. If two ranks are in different ones, both end at all ranks with
/// PW_INVALID_ARGUMENT (different_calls()).
class Team {
 public:
  virtual ~Team() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// A number that only this job's ranks know; keys carry it so that another job's key is refused.
  [[nodiscard]] virtual uint64_t job() const = 0;
  /// Returns a secret for one purpose, which only ranks of this team can derive (derive_secret()).
  [[nodiscard]] virtual Secret secret_for(std::string_view purpose) const = 0;

  /// Collective. All ranks give the same number of bytes; the result has them in rank order. Throws Error
  /// (PW_TIMEOUT, PW_PEER_LOST, PW_CLOSED). After a timeout the collective call is still under way: the same
  /// call, repeated, waits for its end, and any other collective call throws PW_INVALID_ARGUMENT.
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) = 0;
  void barrier(uint64_t timeout_ns) { all_gather({}, timeout_ns); }

  /// The same for parts of different lengths; `kind` is CallKind::parts or CallKind::context.
  virtual std::vector<std::vector<std::byte>> all_gather_parts(CallKind /*kind*/,
                                                               std::span<const std::byte> mine,
                                                               uint64_t /*timeout_ns*/) {
    return {{mine.begin(), mine.end()}};
  }

  /// Collective. Returns at once. Throws Error if an all_gather that timed out is still under way.
  virtual std::unique_ptr<Exchange> begin_exchange(CallKind kind);
  /// The same, collective over these ranks alone, which must include this rank. All partners must be in the
  /// list.
  virtual std::unique_ptr<Exchange> begin_exchange_among(CallKind kind, std::span<const int> ranks);

  /// Whether some ranks are on another host (base/host_id.h).
  [[nodiscard]] virtual bool several_hosts() const { return false; }

  /// Whether the rank is known to have died or left (also in good order). Needs one relaxed load, so a
  /// spinning wait can call it.
  [[nodiscard]] virtual bool lost(int rank) const noexcept = 0;
  /// Whether no rank is lost. An inline load, because each small put asks.
  [[nodiscard]] bool none_lost() const noexcept { return !some_lost_.load(std::memory_order_relaxed); }
  /// Returns any lost rank other than this one, or -1.
  [[nodiscard]] virtual int any_lost() const noexcept = 0;
  /// Returns a text for messages: "rank 2 was lost 0.8 s ago: its process (4711 on node01) ended without
  /// leaving the team", "rank 2 left the team 0.8 s ago".
  [[nodiscard]] virtual std::string describe_loss(int rank) const = 0;

  /// Calls `callback` once for each lost rank (earlier ones included) from the team's own thread, until the
  /// returned handle is dropped; dropping it waits for a call in progress. The callback must not block.
  [[nodiscard]] virtual std::shared_ptr<void> on_loss(std::function<void(int rank)> callback) = 0;

 protected:
  std::atomic<bool> some_lost_{false};  ///< set with the first loss

 private:
  ForkGuard children_;
};

/// Copies what rank 0 has in `data` to all ranks. A team needs nothing else of a launcher, PMIx or MPI.
using Broadcast = std::function<void(std::span<std::byte> data)>;

/// Makes a team by a broadcast: rank 0 opens the bootstrap server, and all ranks connect with the job's
/// secret.
std::unique_ptr<Team> make_team(int rank, int size, const Broadcast& broadcast);

/// Makes the team in which this process was launched, by `peerway run`, PMIx, or the environment of mpirun or
/// srun; else a team of one.
std::unique_ptr<Team> team_from_launcher();

}  // namespace pw
