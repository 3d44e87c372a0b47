// The rendezvous: rank 0 opens the bootstrap server, and all ranks, rank 0 too, join it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "team/bootstrap_server.h"
#include "team/team.h"
#include "team/ticket.h"

namespace pw {

/// The addresses at which rank 0 listens.
enum class Reach : uint8_t {
  host,   ///< a Unix socket: all ranks are on this host
  hosts,  ///< TCP, and a Unix socket for those on this host
};

/// Rank 0's side before all have joined.
struct Opening {
  Ticket ticket;  ///< for the others
  std::unique_ptr<BootstrapServer> server;
  Descriptor own;  ///< rank 0's own connection
};

/// Opens a bootstrap server with a new secret at new addresses, or with those of the ticket. Throws Error.
Opening open_server(int size, Reach reach, uint64_t deadline);
Opening open_server(int size, const Ticket& ticket, uint64_t deadline);

/// Joins rank 0 to its own server. Throws Error if not all ranks join in time.
std::unique_ptr<Team> join_own(int size, Opening opening, uint64_t deadline);

/// Joins another rank. `find` returns the ticket, or nothing, with the reason in the text, while there is
/// none; it is called again after each failed attempt. With `trusted`, a server that does not know the
/// secret ends the attempts. Otherwise the ticket may be an old one that will be replaced.
std::unique_ptr<Team> join(int rank, int size, bool trusted,
                           const std::function<std::optional<Ticket>(std::string& why_not)>& find,
                           uint64_t deadline);

std::unique_ptr<Team> team_of_one();

/// The secret of this process's `number`th team, so that several teams from one launch are kept apart.
Secret team_secret(const Secret& job, uint64_t number);

/// Throws Error(PW_INVALID_ARGUMENT) unless 0 <= rank < size; `origin` names where they came from.
void check_rank(int64_t rank, int64_t size, const std::string& origin);

}  // namespace pw
