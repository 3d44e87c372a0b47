// The team this process was launched in: where rank, size and the ticket come from.
#include <atomic>
#include <cstdlib>

#include "base/clock.h"
#include "base/config.h"
#include "base/status.h"
#include "team/launcher.h"
#include "team/rendezvous.h"
#include "team/team.h"

namespace pw {
namespace {

/// `peerway run` has put secret and address into the environment of all ranks.
std::unique_ptr<Team> team_of_peerway_run(const Launch& launch, uint64_t number, uint64_t deadline) {
  Ticket ticket;
  ticket.secret = team_secret(parse_secret(launch.secret, "PEERWAY_SECRET"), number);
  ticket.addresses.push_back(parse_address(launch.rendezvous, "PEERWAY_RENDEZVOUS"));
  Address& address = ticket.addresses.front();
  if (address.unix_socket && number > 0) address.host += "." + std::to_string(number);
  if (launch.rank == 0) return join_own(launch.size, open_hub(launch.size, ticket, deadline), deadline);
  return join(launch.rank, launch.size, true, [&](std::string&) { return ticket; }, deadline);
}

}  // namespace

std::unique_ptr<Team> team_from_launcher() {
  static std::atomic<uint64_t> teams{0};
  const uint64_t number = teams++;
  const Launch launch =
      read_launch([](const char* name) -> const char* { return std::getenv(name); }, config("launcher"));
  if (launch.size == 1 && launch.by != Launch::By::pmix) return team_of_one();
  const uint64_t deadline = deadline_after(config_number("timeout"));
  if (launch.by == Launch::By::peerway) return team_of_peerway_run(launch, number, deadline);
  throw Error(PW_UNAVAILABLE, "peerway: only `peerway run` is known so far");
}

}  // namespace pw
