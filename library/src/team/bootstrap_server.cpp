#include "team/bootstrap_server.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/random.h"

namespace pw {

using namespace wire;

namespace {
/// ns: the server stays this long after rank 0's goodbye, to pass on the goodbyes of the others. Most ranks
/// leave at about the same time.
constexpr uint64_t kLinger = 2'000'000'000;
constexpr int kPoll = 20;  // ms: how often a lingering server checks whether rank 0 wants it to end
}  // namespace

BootstrapServer::BootstrapServer(int size, const Secret& secret, std::vector<Descriptor> listeners,
                                 Descriptor own, uint64_t deadline)
    : size_(static_cast<uint32_t>(size)),
      secret_(secret),
      deadline_(deadline),
      gathers_(size),
      accept_queue_(secret, std::move(listeners)),
      roster_(static_cast<size_t>(size)) {
  connections_.push_back(std::make_unique<Connection>());
  connections_.back()->channel = Channel(std::move(own));
  thread_ = std::thread([this] { run(); });
}

BootstrapServer::~BootstrapServer() {
  if (thread_.joinable()) thread_.join();
}

void BootstrapServer::run() {
  try {
    serve();
  } catch (const std::exception& error) {  // out of memory or descriptors
    log(LogLevel::error, format("the bootstrap server of the team ends: {}", error.what()));
  }
  accept_queue_.close();
  connections_.clear();  // the clients see the server's end at once
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool BootstrapServer::ends_within(uint64_t ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return ended_; });
}

void BootstrapServer::serve() {
  while (!over_) {
    poll_once();
    if (!over_ && !complete_ && now_ns() >= deadline_) fail_late();
    if (now_ns() >= linger_until_ || (hurried_.load() && linger_until_ != PW_FOREVER)) over_ = true;
    std::erase_if(connections_, [](const auto& each) { return each->closing && !each->channel.unsent(); });
  }
  finish();
}

void BootstrapServer::poll_once() {
  std::vector<pollfd> polled;
  for (const auto& each : connections_) {
    const bool unsent = each->channel.unsent();
    polled.push_back({each->channel.descriptor(), static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), 0});
  }
  const size_t count = polled.size();
  accept_queue_.add_to(polled);
  const uint64_t until = complete_ ? linger_until_ : deadline_;
  const int longest = poll_milliseconds(until);
  if (::poll(polled.data(), polled.size(),
             complete_ && until != PW_FOREVER ? std::min(longest, kPoll) : longest) <= 0)
    return;

  for (size_t i = 0; i < count; ++i)
    if (polled[i].revents & ~POLLOUT) receive(*connections_[i]);
  if (!complete_) {
    for (AcceptQueue::Authenticated& accepted : accept_queue_.serve(std::span(polled).subspan(count))) {
      connections_.push_back(std::make_unique<Connection>());
      connections_.back()->channel = std::move(accepted.channel);
      challenge(*connections_.back(), accepted.hello);
    }
  }
  // Writes to rank 0's own connection, the first, last. Once rank 0 has its answer it may end, and this
  // server with it; the other answers have been sent by then.
  std::for_each(connections_.rbegin(), connections_.rend(), [](const auto& each) {
    if (each->channel.unsent() && !each->channel.write()) each->closing = true;
  });
}

void BootstrapServer::receive(Connection& connection) {
  bool open = connection.channel.read();
  try {
    const auto limit = [&] {
      return connection.state == State::joined ? kMaxContribution + 64 : kMaxHandshake;
    };
    while (!connection.closing && !over_)
      if (const auto message = connection.channel.next(limit()))
        handle(connection, *message);
      else
        break;
  } catch (const Error& error) {
    if (connection.state == State::joined)
      log(LogLevel::error, format("rank {} is cut off: {}", connection.hello.rank, error.what()));
    else
      accept_queue_.count_refusal(error.what());
    open = false;
  }
  connection.channel.let_go();  // there is one connection for each rank, and most are idle
  if (open) return;
  connection.closing = true;
  connection.channel = Channel(Descriptor());  // drops what is unsent
  if (connection.state == State::joined && clients_.contains(connection.hello.rank))
    lose(connection.hello.rank, How::died);
}

void BootstrapServer::handle(Connection& connection, const Message& message) {
  const bool joined = connection.state == State::joined;
  if (connection.state == State::fresh && message.type == Type::hello) {
    challenge(connection, accept_queue_.check(message));
  } else if (connection.state == State::challenged && message.type == Type::join) {
    join(connection, message);
  } else if (joined && message.type == Type::contribute) {
    send(gathers_.contribute(static_cast<int>(connection.hello.rank), parse_contribution(message.payload)));
  } else if (joined && message.type == Type::abort) {
    const Failure failure = parse_failure(message.payload);
    const auto payload = std::make_shared<const Bytes>(message.payload);
    for (const auto& [rank, client] : clients_)
      if (client != &connection) client->channel.queue(Type::abort, payload);
    if ((failure.sequence & kOfSome) == 0) send(gathers_.abort(failure));
  } else if (joined && message.type == Type::lost) {
    lose(parse_loss(message.payload, size_).rank, How::died);
  } else if (joined && message.type == Type::abandon) {
    const auto rank = static_cast<int>(connection.hello.rank);
    send(gathers_.lose(rank, format("rank {} was interrupted in a collective; make a new team", rank),
                       PW_INTERRUPTED));
  } else if (joined && message.type == Type::goodbye) {
    connection.closing = true;
    lose(connection.hello.rank, How::departed);
  } else {
    throw Error(PW_INVALID_ARGUMENT,
                format("a message of type {} came out of turn", static_cast<int>(message.type)));
  }
}

void BootstrapServer::challenge(Connection& connection, const Hello& hello) {
  connection.hello = hello;
  const Nonce nonce = random_bytes<16>();
  connection.channel.seal_outgoing(session_key(secret_, "server", connection.hello, nonce));
  connection.channel.seal_incoming(session_key(secret_, "client", connection.hello, nonce));
  connection.channel.queue(Type::challenge, pack(nonce));
  connection.state = State::challenged;
}

void BootstrapServer::join(Connection& connection, const Message& message) {
  const auto [rank, size, nonce] = connection.hello;
  Identity identity = parse_join(message.payload);
  if (!failure_ && (size != size_ || clients_.contains(rank))) {
    // The process knows the secret, so it belongs to this job and was started wrongly: nobody can go on.
    connection.state = State::joined;
    return fail_all(PW_INVALID_ARGUMENT,
                    size != size_
                        ? format("rank {} was started as one of {} ranks and rank 0 as one of {}; start "
                                 "all with the same number",
                                 rank, size, size_)
                        : format("two processes joined as rank {} ({} and {} on {}); each must have "
                                 "its own rank",
                                 rank, roster_[rank].process, identity.process, identity.host_name));
  }
  connection.state = State::joined;
  own_joined_ |= rank == 0;
  if (failure_) {
    connection.channel.queue(Type::refuse, failure_);
    over_ = own_joined_;
    return;
  }
  roster_[rank] = std::move(identity);
  clients_[rank] = &connection;
  if (clients_.size() == size_) welcome_all();
}

void BootstrapServer::welcome_all() {
  complete_ = true;
  accept_queue_.close();
  const auto roster = std::make_shared<const Bytes>(pack(roster_));
  for (const auto& [rank, connection] : clients_) connection->channel.queue(Type::welcome, roster);
  for (const auto& each : connections_)
    if (each->state != State::joined) each->closing = true;
}

void BootstrapServer::send(const std::vector<Gathers::Answer>& answers) {
  for (const Gathers::Answer& answer : answers) {
    const auto client = clients_.find(static_cast<uint32_t>(answer.rank));
    if (client == clients_.end()) continue;
    if (answer.complete)
      client->second->channel.queue(Type::result, answer.result);
    else
      client->second->channel.queue(Type::failure, pack(answer.failure));
  }
}

void BootstrapServer::lose(uint32_t rank, How how) {
  const auto client = clients_.find(rank);
  if (client == clients_.end()) return;
  client->second->closing = true;
  clients_.erase(client);
  const Identity& who = roster_[rank];
  const std::string why =
      how == How::departed ? format("rank {} has left the team", rank)
                           : format("rank {} is lost: its process ({} on {}) ended without leaving the team",
                                    rank, who.process, who.host_name);
  if (rank == 0 && how == How::departed) linger_until_ = deadline_after(kLinger);
  if (rank == 0 && (how == How::died || !complete_)) over_ = true;
  if (!complete_) return fail_all(PW_PEER_LOST, format("{}, while the team was being made", why));
  for (const auto& [other, connection] : clients_)
    connection->channel.queue(Type::lost, pack(Loss{rank, how}));
  send(gathers_.lose(static_cast<int>(rank), why));
  if (clients_.empty()) over_ = true;
}

/// Refuses all ranks that have joined. The server stays until rank 0, which is about to join, has received
/// its refusal.
void BootstrapServer::fail_all(pw_status status, const std::string& why) {
  if (failure_) return;  // only the first reason counts
  failure_ = std::make_shared<const Bytes>(pack(Refusal{status, why}));
  for (const auto& each : connections_)
    if (each->state == State::joined && !each->closing) each->channel.queue(Type::refuse, failure_);
  over_ = own_joined_;
}

void BootstrapServer::fail_late() {
  std::string missing;
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < size_; ++rank)
    if (!clients_.contains(rank) && ++count <= 8)
      missing += format("{}{}", missing.empty() ? "" : ", ", rank);
  std::string why = format(
      "{} of {} ranks did not join the team in time (rank {}{}). Were all started, with "
      "the same secret and address? PEERWAY_TIMEOUT limits the wait",
      count, size_, missing, count > 8 ? ", ..." : "");
  fail_all(PW_TIMEOUT, why + accept_queue_.refusals());
  over_ = true;
}

/// Sends what is unsent, and waits until the clients have read it and end their connections. The wait is
/// bounded, because a client may not read.
void BootstrapServer::finish() {
  accept_queue_.close();
  const uint64_t deadline = now_ns() + kGoodbyeTime;
  do {
    std::vector<pollfd> polled;
    for (const auto& each : connections_) {
      Channel& channel = each->channel;
      if (channel.descriptor() < 0) continue;
      if (!channel.write())
        channel.close();
      else if (!channel.unsent())
        channel.finish();
      polled.push_back(
          {channel.descriptor(), static_cast<short>(POLLIN | (channel.unsent() ? POLLOUT : 0)), 0});
    }
    if (polled.empty()) return;
    ::poll(polled.data(), polled.size(), std::min(poll_milliseconds(deadline), kPoll));
    for (const auto& each : connections_)
      if (each->channel.descriptor() >= 0 && !each->channel.drain()) each->channel.close();
  } while (now_ns() < deadline && !hurried_.load());
}

}  // namespace pw
