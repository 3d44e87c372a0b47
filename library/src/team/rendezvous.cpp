#include "team/rendezvous.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/config.h"
#include "base/format.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/status.h"
#include "team/bootstrap_client.h"
#include "team/socket.h"

namespace pw {

using namespace wire;

namespace {

// A rank that is not admitted soon connects again: other connections may have filled the socket's queue or
// the accept queue, or its connection was evicted. The kernel answers a connect, but the server is a thread
// that may be busy. The first tries are short, because TCP itself would wait a second; later ones are longer,
// for ranks that are far away.
constexpr uint64_t kTurn =
    1'000'000'000;  // ns: time in the queue of a Unix socket, where a new attempt would lose its place
struct AttemptTimes {
  uint64_t connect = 50'000'000;
  uint64_t answer = 500'000'000;
  void grow() {
    connect = std::min<uint64_t>(connect + connect / 8, 1'000'000'000);
    answer = std::min<uint64_t>(answer + answer / 8, 4'000'000'000);
  }
};
// In ns; it lets the server's list of missing ranks arrive first.
constexpr uint64_t kServerSlack = 2'000'000'000;

class TeamOfOne final : public Team {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] uint64_t job() const override { return job_; }
  [[nodiscard]] Secret secret_for(std::string_view purpose) const override {
    return derive_secret(secret_, purpose);
  }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, uint64_t) override {
    return {mine.begin(), mine.end()};
  }
  [[nodiscard]] bool lost(int) const noexcept override { return false; }
  [[nodiscard]] int any_lost() const noexcept override { return -1; }
  [[nodiscard]] std::string describe_loss(int rank) const override {
    return format("rank {} is not lost", rank);
  }
  [[nodiscard]] std::shared_ptr<void> on_loss(std::function<void(int)>) override { return nullptr; }

 private:
  uint64_t job_ = [] {
    const auto bytes = random_bytes<8>();
    return ByteReader(bytes, "random bytes").get<uint64_t>();
  }();
  Secret secret_ = random_bytes<16>();
};

/// Throws if the program interrupts the joining.
void check_interrupt() {
  if (Interrupt::ask()) throw Error(PW_INTERRUPTED, "joining the team was interrupted by this program");
}

/// Waits for the next message; used before a thread serves the connection.
Message await(Channel& channel, size_t limit, uint64_t deadline, const std::string& where) {
  while (true) {
    if (auto message = channel.next(limit)) return std::move(*message);
    pollfd polled{channel.descriptor(), static_cast<short>(POLLIN | (channel.unsent() ? POLLOUT : 0)), 0};
    ::poll(&polled, 1, sliced_milliseconds(deadline));
    check_interrupt();
    channel.write();
    if (!channel.read()) {
      if (auto message = channel.next(limit)) return std::move(*message);
      throw Error(PW_SYSTEM, format("the process at {} closed the connection", where));
    }
    if (now_ns() >= deadline) throw Error(PW_TIMEOUT, format("the process at {} does not answer", where));
  }
}

/// Proves to the server that this rank knows the secret, and checks that the server knows it.
Channel introduce(Descriptor socket, int rank, int size, const Secret& secret, const std::string& addresses,
                  uint64_t deadline, const std::string& where) {
  if (const auto user = peer_user(socket.get()); user && *user != ::geteuid())
    throw Error(PW_DENIED,
                format("the process at {} belongs to user {}, not to user {}", where, *user, ::geteuid()));
  Channel channel(std::move(socket));
  const Hello hello{static_cast<uint32_t>(rank), static_cast<uint32_t>(size), random_bytes<16>()};
  channel.seal_outgoing(hello_key(secret));
  channel.queue(Type::hello, pack(hello));
  const Message answer = await(channel, kMaxHandshake, deadline, where);
  if (answer.type != Type::challenge && answer.type != Type::refuse)
    throw Error(PW_DENIED,
                format("the process at {} does not answer as the bootstrap server of a team", where));
  const Nonce nonce = answer.type == Type::challenge ? parse_challenge(answer.payload) : Nonce{};
  if (answer.type == Type::refuse || !channel.opens_with(answer, session_key(secret, "server", hello, nonce)))
    throw Error(PW_DENIED,
                format("the process at {} does not know this job's secret: wrong PEERWAY_SECRET, or "
                       "the address of another job",
                       where));
  channel.seal_outgoing(session_key(secret, "client", hello, nonce));
  channel.queue(Type::join, pack(own_identity(addresses)));
  return channel;
}

/// Whether the ranks may be on several hosts.
bool spans_hosts(const Ticket& ticket) {
  return std::ranges::any_of(ticket.addresses, [](const Address& address) { return !address.unix_socket; });
}

uint64_t later(uint64_t deadline, uint64_t by) {
  return deadline > PW_FOREVER - by ? PW_FOREVER : deadline + by;
}

/// Tries the addresses in turn. Throws the most informative error.
Channel reach_server(const Ticket& ticket, int rank, int size, const std::string& own,
                     const AttemptTimes& times, uint64_t deadline) {
  std::optional<Error> reason;
  const auto within = [&](uint64_t span) { return std::min(deadline, deadline_after(span)); };
  for (const Address& address : ticket.addresses) {
    const std::string where = to_string(address);
    try {
      Descriptor socket = connect_to(address, within(address.unix_socket ? kTurn : times.connect));
      return introduce(std::move(socket), rank, size, ticket.secret, own, within(times.answer), where);
    } catch (const Error& error) {
      if (error.status() == PW_INTERRUPTED) throw;
      const bool is_denied = reason && reason->status() == PW_DENIED;
      // The answer was not a Peerway message: another program listens there.
      if (error.status() == PW_INVALID_ARGUMENT)
        reason.emplace(PW_DENIED, format("{} (at {})", error.what(), where));
      else if (!is_denied)
        reason.emplace(error);
    }
  }
  throw reason.value_or(Error(PW_INVALID_ARGUMENT, "rank 0 gave no address"));
}

uint64_t deadline_for_setup() {
  check_config();
  return deadline_after(config_number("timeout"));
}

void share(const Ticket& ticket, const Broadcast& broadcast) {
  std::vector<char> text(kTicketBytes);
  std::ranges::copy(format_ticket(ticket), text.begin());
  broadcast(std::as_writable_bytes(std::span(text)));
}

std::unique_ptr<Team> join_by_broadcast(int rank, int size, const Broadcast& broadcast) {
  // Comes first, because the broadcast may pass through this rank even if the rest fails.
  std::vector<char> text(kTicketBytes);
  broadcast(std::as_writable_bytes(std::span(text)));
  const Ticket ticket = parse_ticket({text.data(), text.size()}, "what rank 0 broadcast");
  return join(rank, size, true, [&](std::string&) { return std::optional(ticket); }, deadline_for_setup());
}

Opening open_at(int size, Ticket ticket, std::vector<Descriptor> listeners, uint64_t deadline) {
  auto [own, servers_end] = socket_pair();
  auto server = std::make_unique<BootstrapServer>(size, ticket.secret, std::move(listeners),
                                                  std::move(servers_end), deadline);
  return {std::move(ticket), std::move(server), std::move(own)};
}

}  // namespace

Opening open_server(int size, Reach reach, uint64_t deadline) {
  Ticket ticket;
  ticket.secret = random_bytes<16>();
  ticket.addresses.push_back({true, "@peerway-" + to_hex(random_bytes<8>()), {}});
  std::vector<Descriptor> listeners;
  listeners.push_back(listen_on(ticket.addresses.front()));
  if (reach == Reach::hosts) {
    std::vector<Address> reachable;
    listeners.push_back(listen_on_any_port(reachable));
    ticket.addresses.insert(ticket.addresses.end(), reachable.begin(), reachable.end());
  }
  return open_at(size, std::move(ticket), std::move(listeners), deadline);
}

Opening open_server(int size, const Ticket& ticket, uint64_t deadline) {
  std::vector<Descriptor> listeners;
  for (const Address& address : ticket.addresses) listeners.push_back(listen_on(address));
  return open_at(size, ticket, std::move(listeners), deadline);
}

std::unique_ptr<Team> join_own(int size, Opening opening, uint64_t deadline) {
  Listening own = Listening::open(spans_hosts(opening.ticket));
  Channel channel =
      introduce(std::move(opening.own), 0, size, opening.ticket.secret, own.addresses, deadline, "rank 0");
  return std::make_unique<BootstrapClient>(0, size, opening.ticket.secret, std::move(channel), std::move(own),
                                           std::move(opening.server), later(deadline, kServerSlack));
}

std::unique_ptr<Team> join(int rank, int size, bool trusted,
                           const std::function<std::optional<Ticket>(std::string&)>& find,
                           uint64_t deadline) {
  std::string why = "rank 0 has not opened the team";
  AttemptTimes times;
  Listening own;
  for (useconds_t pause = 1000;; pause = std::min<useconds_t>(2 * pause, 50'000)) {
    std::optional<Channel> channel;
    std::optional<Ticket> ticket = find(why);
    if (ticket && ticket->status != PW_OK) throw Error(ticket->status, ticket->problem);
    try {
      if (ticket && own.listeners.empty()) own = Listening::open(spans_hosts(*ticket));
      if (ticket) channel = reach_server(*ticket, rank, size, own.addresses, times, deadline);
    } catch (const Error& error) {
      if ((trusted && error.status() == PW_DENIED) || error.status() == PW_INTERRUPTED) throw;
      why = error.what();
      if (error.status() == PW_TIMEOUT) times.grow();
    }
    if (channel)
      return std::make_unique<BootstrapClient>(rank, size, ticket->secret, std::move(*channel),
                                               std::move(own), nullptr, later(deadline, kServerSlack));
    if (now_ns() >= deadline)
      throw Error(PW_TIMEOUT,
                  format("rank {} of {} could not connect to rank 0 in time (PEERWAY_TIMEOUT bounds the "
                         "wait): {}",
                         rank, size, why));
    check_interrupt();
    ::usleep(pause);
  }
}

std::unique_ptr<Team> team_of_one() { return std::make_unique<TeamOfOne>(); }

Secret team_secret(const Secret& job, uint64_t number) {
  ByteWriter text;
  text.put_text("peerway team");
  text.put(number);
  return siphash(job, text.take());
}

void check_rank(int64_t rank, int64_t size, const std::string& origin) {
  if (size < 1 || size > kMaxRanks)
    throw Error(PW_INVALID_ARGUMENT, format("{}: size {} is not from 1 to {}", origin, size, kMaxRanks));
  if (rank < 0 || rank >= size)
    throw Error(PW_INVALID_ARGUMENT, format("{}: rank {} is not from 0 to {}", origin, rank, size - 1));
}

std::unique_ptr<Team> make_team(int rank, int size, const Broadcast& broadcast) {
  check_rank(rank, size, "making a team");
  if (size == 1) {
    check_config();
    return team_of_one();
  }
  if (rank != 0) return join_by_broadcast(rank, size, broadcast);
  uint64_t deadline = 0;
  Opening opening;
  try {
    deadline = deadline_for_setup();
    opening = open_server(size, Reach::hosts, deadline);
  } catch (const Error& error) {  // the other ranks wait in the broadcast and receive the reason
    Ticket problem;
    problem.status = error.status();
    problem.problem = error.what();
    share(problem, broadcast);
    throw;
  }
  share(opening.ticket, broadcast);
  return join_own(size, std::move(opening), deadline);
}

}  // namespace pw
