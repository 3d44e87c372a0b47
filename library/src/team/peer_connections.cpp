#include "team/peer_connections.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/random.h"
#include "team/socket.h"

namespace pw {

using namespace wire;

namespace {
constexpr uint64_t kAttemptTime = 3'000'000'000;  // ns: a host that is up answers a first or second attempt
constexpr uint64_t kRoundPause = 20'000'000;      // ns: pause before the addresses are tried again
}  // namespace

Listening Listening::open(bool hosts) {
  Listening listening;
  std::vector<Address> at{{true, "@peerway-" + to_hex(random_bytes<8>()), {}}};
  listening.listeners.push_back(listen_on(at.front()));
  if (hosts) {
    std::vector<Address> reachable;
    listening.listeners.push_back(listen_on_any_port(reachable));
    at.insert(at.end(), reachable.begin(), reachable.end());
  }
  // Bytes left in a join message; a host with more addresses is reached by the first ones.
  constexpr size_t kRoom = 480;
  for (const Address& address : at)
    if (const std::string text = to_string(address); listening.addresses.size() + text.size() < kRoom)
      listening.addresses += (listening.addresses.empty() ? "" : " ") + text;
  return listening;
}

PeerConnections::PeerConnections(int rank, int size, const Secret& secret, Listening listening)
    : rank_(rank),
      size_(size),
      secret_(secret),
      accept_queue_(queue_secret(rank), std::move(listening.listeners)) {}

/// Each rank's accept queue has a secret of its own, so that nobody can relay a hello to another rank.
Secret PeerConnections::queue_secret(int rank) const {
  return derive_secret(secret_, format("peerway accept queue of rank {}", rank));
}

PeerConnections::Connection* PeerConnections::find(int rank) const {
  const auto position = std::ranges::find_if(
      connections_, [&](const auto& connection) { return connection->rank == rank && !connection->ended; });
  return position == connections_.end() ? nullptr : position->get();
}

bool PeerConnections::connected(int rank) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(connections_, [&](const auto& connection) { return connection->rank == rank; });
}

bool PeerConnections::unsent(int rank) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      connections_, [&](const auto& connection) { return connection->rank == rank && connection->unsent(); });
}

bool PeerConnections::connect(int rank, const std::string& addresses, uint64_t deadline) {
  const std::lock_guard lock(mutex_);
  if (find(rank) != nullptr) return false;
  auto connection = std::make_unique<Connection>();
  connection->rank = rank;
  connection->until = deadline;
  std::istringstream words(addresses);
  for (std::string word; words >> word;) try {
      connection->addresses.push_back(parse_address(word, "where a rank listens"));
    } catch (const Error& error) {
      connection->why = error.what();
    }
  try_next_address(*connection);
  connections_.push_back(std::move(connection));
  return true;
}

/// Tries the next address. After the last one, a rank whose socket or accept queue was full is tried again
/// after a pause.
void PeerConnections::try_next_address(Connection& connection) {
  connection.channel.close();
  connection.state = now_ns() < connection.until ? State::connecting : State::unanswered;
  if (connection.state == State::unanswered) return;
  while (connection.next_address < connection.addresses.size()) {
    const Address& address = connection.addresses[connection.next_address++];
    try {
      bool connected = false;
      connection.channel = Channel(begin_connect(address, connected));
      connection.attempt_until = std::min(connection.until, deadline_after(kAttemptTime));
      if (connected) send_hello(connection);
      return;
    } catch (const Error& error) {
      connection.channel.close();
      connection.full = connection.full || error.status() == PW_TIMEOUT;
      connection.why = error.what();
    }
  }
  if (!std::exchange(connection.full, false)) connection.state = State::unanswered;
  connection.next_address = 0;
  connection.attempt_until = std::min(connection.until, deadline_after(kRoundPause));
}

void PeerConnections::send_hello(Connection& connection) {
  const Address& address = connection.addresses[connection.next_address - 1];
  check_connected(connection.channel.descriptor(), address);
  if (const auto user = peer_user(connection.channel.descriptor()); user && *user != ::geteuid())
    throw Error(PW_DENIED, format("the process at {} belongs to user {}", to_string(address), *user));
  connection.state = State::greeted;
  connection.attempt_until = connection.until;  // waits longer, because the process may be slow
  connection.hello = {static_cast<uint32_t>(rank_), static_cast<uint32_t>(size_), random_bytes<16>()};
  connection.channel.seal_outgoing(hello_key(queue_secret(connection.rank)));
  connection.channel.queue(Type::hello, pack(connection.hello));
  // Writes at once, because a connection without a hello may be evicted from a full queue.
  connection.channel.write();
}

void PeerConnections::finish_connect(Connection& connection) try {
  send_hello(connection);
} catch (const Error& error) {
  connection.why = error.what();
  try_next_address(connection);
}

void PeerConnections::queue(Connection& connection, Type type, SharedBytes payload) {
  if (connection.state != State::open) {
    connection.pending.emplace_back(type, std::move(payload));
    return;
  }
  connection.channel.queue(type, std::move(payload));
  connection.channel.write();  // a broken connection is noticed by the next read
}

bool PeerConnections::send(int rank, Type type, SharedBytes payload) {
  const std::lock_guard lock(mutex_);
  Connection* connection = find(rank);
  if (connection != nullptr) queue(*connection, type, std::move(payload));
  return connection != nullptr;
}

void PeerConnections::send_all(Type type, const SharedBytes& payload) {
  const std::lock_guard lock(mutex_);
  for (const auto& connection : connections_)
    if (find(connection->rank) == connection.get()) queue(*connection, type, payload);
}

// ---- the thread that serves it ----

void PeerConnections::leave_network() {
  const std::lock_guard lock(mutex_);
  accept_queue_.keep_first_listener();
}

void PeerConnections::write() {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const auto& connection) { return connection->ended; });
  const uint64_t now = now_ns();
  for (const auto& connection : connections_) {
    const bool waits = connection->state == State::connecting || connection->state == State::greeted;
    if (!waits || now < connection->attempt_until) {
      connection->channel.write();
    } else {
      if (connection->channel.descriptor() >= 0) connection->why = "nobody answers there";
      try_next_address(*connection);
    }
  }
}

uint64_t PeerConnections::due() const {
  const std::lock_guard lock(mutex_);
  uint64_t due = PW_FOREVER;
  for (const auto& connection : connections_) {
    if (connection->state == State::unanswered) due = 0;
    if (connection->state == State::connecting || connection->state == State::greeted)
      due = std::min(due, connection->attempt_until);
  }
  return due;
}

void PeerConnections::add_to(std::vector<pollfd>& polled) {
  const std::lock_guard lock(mutex_);
  for (const auto& connection : connections_) {
    const bool writes = connection->state == State::connecting || connection->channel.unsent();
    polled.push_back(
        {connection->channel.descriptor(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  polled_ = connections_.size();
  accept_queue_.add_to(polled);
}

std::vector<PeerConnections::Event> PeerConnections::serve(std::span<const pollfd> polled) {
  const std::lock_guard lock(mutex_);
  std::vector<Event> events;
  for (size_t i = 0; i < polled_; ++i) {
    Connection& connection = *connections_[i];
    if (connection.state == State::connecting && polled[i].revents != 0)
      finish_connect(connection);
    else if ((polled[i].revents & ~POLLOUT) != 0)
      receive(connection, events);
    if (connection.state == State::unanswered) end(connection, events);
  }
  std::stable_partition(events.begin(), events.end(),
                        [](const Event& each) { return each.kind == EventKind::message; });
  for (AcceptQueue::Authenticated& incoming : accept_queue_.serve(polled.subspan(polled_)))
    if (!leaving_) add_incoming(std::move(incoming));
  return events;
}

void PeerConnections::receive(Connection& connection, std::vector<Event>& events) {
  bool open = connection.channel.read(), refused = false;
  try {
    while (auto message = connection.channel.next(kMaxContribution + 64))
      if (!handle(connection, *message, events))
        events.push_back({connection.rank, EventKind::message, std::move(*message), How::none, {}});
  } catch (const Error& error) {
    log(LogLevel::error,
        format("rank {} drops the connection with rank {}: {}", rank_, connection.rank, error.what()));
    connection.why = error.what();
    open = false;
    refused = true;
  }
  if (open) return;
  if (connection.state != State::greeted || refused) return end(connection, events);
  connection.full = true;  // it was evicted, or nobody listens there any more
  connection.why = "the connection was closed before it was answered";
  try_next_address(connection);
}

void PeerConnections::end(Connection& connection, std::vector<Event>& events) {
  connection.ended = true;
  connection.channel.close();
  // A connection that never opened says nothing about the rank, unless messages were queued for it. A rank
  // that leaves has asked the others to end their connections.
  if (leaving_ || (connection.state != State::open && connection.pending.empty())) return;
  const How how = connection.orderly                ? How::departed
                  : connection.state == State::open ? How::died
                                                    : How::ended;
  events.push_back({connection.rank, EventKind::ended, {}, how, connection.why});
}

/// Handles the messages of the handshake and the goodbye. Returns false if the message is for the rank.
bool PeerConnections::handle(Connection& connection, const Message& message, std::vector<Event>& events) {
  if (connection.state == State::greeted && message.type == Type::challenge) {
    const Nonce nonce = parse_challenge(message.payload);
    const Secret secret = queue_secret(connection.rank);
    if (!connection.channel.opens_with(message, session_key(secret, "called", connection.hello, nonce)))
      throw Error(PW_DENIED, "it does not know this job's secret");
    connection.channel.seal_outgoing(session_key(secret, "caller", connection.hello, nonce));
    connection.channel.queue(Type::join);
  } else if (connection.state == State::challenged && message.type == Type::join) {
    events.push_back({connection.rank, EventKind::opened, {}, How::none, {}});
  } else if (connection.state == State::open && message.type == Type::goodbye) {
    connection.orderly = true;
    return true;
  } else if (connection.state == State::open && message.type >= Type::failure) {
    return false;
  } else {
    throw Error(PW_INVALID_ARGUMENT,
                format("a message of type {} came out of turn", static_cast<int>(message.type)));
  }
  connection.state = State::open;
  connection.addresses = {};
  for (auto& [type, payload] : connection.pending) connection.channel.queue(type, std::move(payload));
  connection.pending.clear();
  return true;
}

void PeerConnections::add_incoming(AcceptQueue::Authenticated incoming) {
  if (incoming.hello.size != static_cast<uint32_t>(size_)) return;
  auto connection = std::make_unique<Connection>();
  connection->rank = static_cast<int>(incoming.hello.rank);
  connection->hello = incoming.hello;
  connection->channel = std::move(incoming.channel);
  connection->state = State::challenged;
  const Nonce nonce = random_bytes<16>();
  const Secret secret = queue_secret(rank_);
  connection->channel.seal_outgoing(session_key(secret, "called", connection->hello, nonce));
  connection->channel.seal_incoming(session_key(secret, "caller", connection->hello, nonce));
  connection->channel.queue(Type::challenge, pack(nonce));
  connections_.push_back(std::move(connection));
}

void PeerConnections::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  for (const auto& connection : connections_)
    queue(*connection, Type::goodbye, std::make_shared<const Bytes>());
}

bool PeerConnections::unsent() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(connections_, [](const auto& connection) { return connection->unsent(); });
}

void PeerConnections::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& connection : connections_)
    if (!std::exchange(connection->finished, true)) connection->channel.finish();
}

bool PeerConnections::connected() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(connections_, [](const auto& connection) {
    return connection->state == State::open && !connection->ended;
  });
}

void PeerConnections::close() {
  const std::lock_guard lock(mutex_);
  connections_.clear();
  accept_queue_.close();
}

}  // namespace pw
