// A team: rank, size, an exchange of bytes out of band, and which ranks are lost. The layers above use only
// this.
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
#include "team/collective.h"

namespace pw {

/// What a rank writes to others, or they wrote to it: the other rank, and what.
using Letters = std::vector<std::pair<int, std::vector<std::byte>>>;

/// Another rank ended a meeting. All ranks know.
class OtherObjected : public Error {
 public:
  using Error::Error;
};

/// Something that all ranks of a team do together, but in which each talks to its partners alone, over
/// connections between the two (team/agreement.h has the usual course of one). It is held until the object
/// goes: so long does this rank hear of objections.
class Meeting {
 public:
  virtual ~Meeting() = default;

  /// To each partner its letter; what they wrote to this rank, in the order of the ranks. In the first
  /// exchange, what others wrote who count this rank as a partner, too. Between two ranks, the letters are in
  /// step. Throws OtherObjected, or Error (PW_TIMEOUT, PW_PEER_LOST, PW_INTERRUPTED, PW_INVALID_ARGUMENT
  /// where a partner does not take part).
  virtual Letters exchange(const Letters& mine, uint64_t timeout_ns) = 0;

  /// Ends the meeting at all ranks, those too that are no partners. Where another rank has ended it before,
  /// throws OtherObjected: that may be why this rank cannot go on. What partners had to say by now is heard
  /// first.
  virtual void object(const Error& why) = 0;

  /// Calls `call` once, from the team's own thread, if another rank objects, even when this rank has had all
  /// its letters. It must not block.
  virtual void on_objection(std::function<void(const Error&)> call) = 0;
};

/// All ranks make the same collective calls in the same order: all_gathers and meetings are counted together.
/// Where two ranks are in different ones, both end at all ranks with PW_INVALID_ARGUMENT (different_calls()).
class Team {
 public:
  virtual ~Team() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Number that only this job's ranks know; keys carry it so that another job's key is refused.
  [[nodiscard]] virtual uint64_t job() const = 0;
  /// A secret for one purpose that only this team's ranks can make (derive_secret()).
  [[nodiscard]] virtual Secret secret_for(std::string_view purpose) const = 0;

  /// Collective, fixed size a rank, in rank order. Throws Error (PW_TIMEOUT, PW_PEER_LOST, PW_CLOSED). One
  /// that timed out is still under way: the same call, repeated, waits for its end, and any other collective
  /// throws PW_INVALID_ARGUMENT.
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) = 0;
  void barrier(uint64_t timeout_ns) { all_gather({}, timeout_ns); }

  /// The same for parts of different lengths; `kind` is Collective::parts or Collective::context.
  virtual std::vector<std::vector<std::byte>> all_gather_parts(Collective /*kind*/,
                                                               std::span<const std::byte> mine,
                                                               uint64_t /*timeout_ns*/) {
    return {{mine.begin(), mine.end()}};
  }

  /// Collective. Returns at once. Throws Error where an all_gather that timed out is still under way.
  virtual std::unique_ptr<Meeting> meet(Collective kind);
  /// Collective over these ranks alone, this one among them: partners are of them.
  virtual std::unique_ptr<Meeting> meet_among(Collective kind, std::span<const int> ranks);

  /// Whether some ranks do not share this one's host (base/host_id.h).
  [[nodiscard]] virtual bool several_hosts() const { return false; }

  /// Whether the rank is known to be dead or gone (an orderly departure counts). One relaxed load: cheap
  /// enough for a spinning wait.
  [[nodiscard]] virtual bool lost(int rank) const noexcept = 0;
  /// Whether none is: one load in line, for what asks at each small put.
  [[nodiscard]] bool none_lost() const noexcept { return !some_lost_.load(std::memory_order_relaxed); }
  /// Any rank other than this one that is lost, or -1.
  [[nodiscard]] virtual int any_lost() const noexcept = 0;
  /// "rank 2 was lost 0.8 s ago: its process (4711 on node01) ended without leaving the team", "rank 2 left
  /// the team 0.8 s ago"; for messages.
  [[nodiscard]] virtual std::string describe_loss(int rank) const = 0;

  /// Calls `callback` once for each rank lost (earlier ones included) from the team's own thread, until the
  /// handle returned is dropped; dropping it waits for a call in progress. The callback must not block.
  [[nodiscard]] virtual std::shared_ptr<void> on_loss(std::function<void(int rank)> callback) = 0;

 protected:
  std::atomic<bool> some_lost_{false};  ///< set with the first loss

 private:
  ForkGuard children_;
};

/// Gives all ranks what rank 0 has in `data`; the only thing a launcher, PMIx or MPI must be able to do for
/// us.
using Broadcast = std::function<void(std::span<std::byte> data)>;

/// The rendezvous over a broadcast: rank 0 opens the hub, everybody connects with the job's secret.
std::unique_ptr<Team> make_team(int rank, int size, const Broadcast& broadcast);

/// The team this process was launched in: `peerway run`, PMIx, the environment of mpirun or srun; else a team
/// of one.
std::unique_ptr<Team> team_from_launcher();

}  // namespace pw
