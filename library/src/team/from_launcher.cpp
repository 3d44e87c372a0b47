// Makes the team of the ranks that were launched together. A process learns its rank and the team's size from
// its launcher. To reach rank 0 it also needs the ticket (team/ticket.h): the addresses of rank 0's bootstrap
// server, and the job's secret. `peerway run` passes these in the environment. Under other launchers rank 0
// makes the ticket, and passes it on by PMIx or by a file that the ranks find by themselves.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status.h"
#include "base/timeout.h"
#include "team/launcher.h"
#include "team/pmix.h"
#include "team/rendezvous.h"
#include "team/rendezvous_file.h"
#include "team/team.h"

namespace pw {
namespace {

/// Parses the addresses of rank 0's host, separated by commas.
std::vector<Address> addresses_of(std::string_view text) {
  std::vector<Address> addresses;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    addresses.push_back(parse_address(text.substr(begin, end - begin), "PEERWAY_RENDEZVOUS"));
    begin = end + 1;
  }
  return addresses;
}

/// Makes the team of ranks that `peerway run` started: it has passed the secret and the addresses to all of
/// them in the environment.
std::unique_ptr<Team> team_of_peerway_run(const Launch& launch, uint64_t number, uint64_t deadline) {
  Ticket ticket;
  ticket.secret = team_secret(parse_secret(launch.secret, "PEERWAY_SECRET"), number);
  ticket.addresses = addresses_of(launch.rendezvous);
  // Every user can read the names of existing sockets. The name of the next team's socket must not follow
  // from them, or another program could take that name first.
  if (Address& address = ticket.addresses.front(); address.unix_socket && number > 0) {
    const Digest name = siphash(ticket.secret, view_of("peerway address"));
    address.host += "." + to_hex(std::span(name).first(8));
    address = parse_address(to_string(address), "PEERWAY_RENDEZVOUS for another team");
  }
  if (launch.rank == 0) return join_own(launch.size, open_server(launch.size, ticket, deadline), deadline);
  return join(launch.rank, launch.size, true, [&](std::string&) { return ticket; }, deadline);
}

/// Makes the team if the launcher gives only rank and size: rank 0 writes the ticket to a file, and the other
/// ranks read it.
std::unique_ptr<Team> team_by_file(const Launch& launch, uint64_t number, uint64_t deadline) {
  RendezvousFile file(launch, number);
  if (launch.rank != 0)
    return join(
        launch.rank, launch.size, false, [&](std::string& why_not) { return file.read(why_not); }, deadline);
  Opening opening = open_server(launch.size, launch.one_host ? Reach::host : Reach::hosts, deadline);
  struct Removal {
    const RendezvousFile& file;
    ~Removal() { file.remove(); }
  } removal{file};
  file.write(opening.ticket);
  return join_own(launch.size, std::move(opening), deadline);
}

/// Makes the team by PMIx, which broadcasts the ticket's text from rank 0 to the others.
std::unique_ptr<Team> team_by_pmix(Pmix& pmix, int rank, int size, uint64_t number) {
  return make_team(rank, size, [&](std::span<std::byte> data) {
    std::string text(reinterpret_cast<const char*>(data.data()), data.size());
    text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
    text = pmix.broadcast("peerway.ticket." + std::to_string(number), text, settings::timeout.nanoseconds());
    std::memcpy(data.data(), text.data(), std::min(text.size(), data.size()));
  });
}

/// Makes the team by PMIx, or returns null if it is to be made by a file: if PMIx is neither needed nor asked
/// for, or if it is not available and the launch does not depend on it.
std::unique_ptr<Team> team_by_pmix(const Launch& launch, LauncherChoice wanted, uint64_t number) {
  // Ranks of one host do not need PMIx. If they do not use it, they cannot interfere with the program's own
  // use of PMIx.
  const bool needed = launch.by == Launch::By::pmix || !launch.one_host;
  if (!launch.pmix || (!needed && wanted != LauncherChoice::pmix)) return nullptr;
  std::string why_not;
  if (Pmix* const pmix = Pmix::of_process(why_not)) {
    const bool has_rank = launch.by != Launch::By::pmix;
    return team_by_pmix(*pmix, has_rank ? launch.rank : pmix->rank(), has_rank ? launch.size : pmix->size(),
                        number);
  }
  if (wanted == LauncherChoice::pmix || launch.by == Launch::By::pmix)
    throw Error(PW_UNAVAILABLE,
                format("PMIx is needed to find the other ranks, but {}. Install libpmix2, or add "
                       "its folder to LD_LIBRARY_PATH",
                       why_not));
  log(LogLevel::info, format("the ranks find one another by a file, not by PMIx: {}", why_not));
  return nullptr;
}

}  // namespace

std::unique_ptr<Team> team_from_launcher() {
  // Every rank makes its teams in the same order, so the number identifies the team within the launch.
  static std::atomic<uint64_t> teams{0};
  const uint64_t number = teams++;
  const LauncherChoice wanted = settings::launcher.value();
  const Launch launch =
      read_launch([](const char* name) -> const char* { return std::getenv(name); }, wanted);
  if (launch.size == 1 && launch.by != Launch::By::pmix) return team_of_one();
  const uint64_t deadline = deadline_after(settings::timeout.nanoseconds());
  if (launch.by == Launch::By::peerway) return team_of_peerway_run(launch, number, deadline);
  if (auto team = team_by_pmix(launch, wanted, number)) return team;
  return team_by_file(launch, number, deadline);
}

}  // namespace pw
