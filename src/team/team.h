// A team: rank, size, an exchange of bytes out of band, and who is dead. Everything above asks only this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "peerway/peerway.h"

namespace pw {

class Team {
 public:
  virtual ~Team() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Number that only this job's ranks know; keys carry it so that another job's key is refused.
  [[nodiscard]] virtual uint64_t job() const = 0;
  /// A secret for one purpose that only this team's ranks can make (derive_secret()).
  [[nodiscard]] virtual Secret secret_for(std::string_view purpose) const = 0;

  /// Collective, fixed size a rank, in rank order. Throws Error (PW_TIMEOUT, PW_PEER_LOST, PW_CLOSED).
  virtual std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t timeout_ns) = 0;
  void barrier(uint64_t timeout_ns) { all_gather({}, timeout_ns); }

  /// The same for parts of different lengths: the lengths first, then all parts padded to the longest.
  std::vector<std::vector<std::byte>> all_gather_parts(std::span<const std::byte> mine, uint64_t timeout_ns);

  /// Whether the rank is known to be dead or gone (an orderly departure counts). One relaxed load: cheap
  /// enough for a spinning wait.
  [[nodiscard]] virtual bool lost(int rank) const noexcept = 0;
  /// Any rank other than this one that is lost, or -1.
  [[nodiscard]] virtual int any_lost() const noexcept = 0;
  /// "rank 2 was lost 0.8 s ago: its process (4711 on node01) ended without leaving the team", "rank 2 left
  /// the team 0.8 s ago"; for messages.
  [[nodiscard]] virtual std::string describe_loss(int rank) const = 0;

  /// Calls `callback` once for each rank lost (earlier ones included) from the team's own thread, until the
  /// handle returned is dropped; dropping it waits for a call in progress. The callback must not block.
  [[nodiscard]] virtual std::shared_ptr<void> on_loss(std::function<void(int rank)> callback) = 0;
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
