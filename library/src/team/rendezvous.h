// The rendezvous: rank 0 opens the bootstrap server, and all ranks, including rank 0, join it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "team/bootstrap_server.h"
#include "team/team.h"
#include "team/ticket.h"

namespace pw {

/// Where rank 0 listens.
enum class Reach : uint8_t {
  host,   ///< a Unix socket: all ranks are on this host
  hosts,  ///< TCP, and a Unix socket for ranks on this host
};

/// Rank 0's objects before all ranks have joined.
struct Opening {
  Ticket ticket;  ///< for the other ranks
  std::unique_ptr<BootstrapServer> server;
  Descriptor own;  ///< rank 0's own connection
};

/// Opens a bootstrap server with a new secret at new addresses, or with those of the ticket. Throws Error.
Opening open_server(int size, Reach reach, uint64_t deadline);
Opening open_server(int size, const Ticket& ticket, uint64_t deadline);

/// Joins rank 0 to its own server. Throws Error if not all ranks join in time.
std::unique_ptr<Team> join_own(int size, Opening opening, uint64_t deadline);

/// Joins any other rank. `find` returns the ticket, or nothing, with the reason in `why_not`, while there is
/// none; it is called again after each failed attempt. With `trusted`, a server that does not know the secret
/// ends the attempts. Otherwise the ticket may be an old one that will be replaced.
std::unique_ptr<Team> join(int rank, int size, bool trusted,
                           const std::function<std::optional<Ticket>(std::string& why_not)>& find,
                           uint64_t deadline);

std::unique_ptr<Team> team_of_one();

/// Returns the secret of this process's team number `number`, so that several teams of one launch are kept
/// apart.
Secret team_secret(const Secret& job, uint64_t number);

/// Throws Error(PW_INVALID_ARGUMENT) unless 0 <= rank < size; `origin` says where they came from.
void check_rank(int64_t rank, int64_t size, const std::string& origin);

}  // namespace pw
