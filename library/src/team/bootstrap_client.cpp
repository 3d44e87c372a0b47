#include "team/bootstrap_client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "team/change.h"

namespace pw {

using namespace wire;

namespace {

/// Names a team in traces. All ranks make their teams in the same order, so the names agree.
std::string next_trace_name() {
  static std::atomic<int> teams{0};
  const int number = ++teams;
  return number == 1 ? "team" : format("team {}", number);
}

}  // namespace

Identity own_identity(std::string addresses) {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return {::getpid(), host_id(settings::host_id.text()), network_id(), name, std::move(addresses)};
}

BootstrapClient::BootstrapClient(int rank, int size, const Secret& secret, Channel channel,
                                 Listening listening, std::unique_ptr<BootstrapServer> server,
                                 uint64_t deadline)
    : rank_(rank),
      size_(size),
      job_(first_word(siphash(secret, view_of("peerway job")))),
      secret_(derive_secret(secret, "peerway ranks")),
      process_(::getpid()),
      server_(std::move(server)),
      losses_(size, some_lost_),
      watches_(rank, losses_, [this](int each) { return identity_of(each); }),
      peers_(rank, size, secret_, std::move(listening)),
      channel_(std::move(channel)),
      trace_name_(next_trace_name()),
      thread_([this] { run(); }) {
  std::unique_lock lock(mutex_);
  const pw_status waited =
      wait_for_change(changed_, lock, deadline, [this] { return welcomed_ || refused_; });
  if (welcomed_) return;
  hurried_ = waited == PW_INTERRUPTED;
  const Answer why = waited == PW_OK ? *refused_
                     : hurried_
                         ? Answer{PW_INTERRUPTED, "joining the team was interrupted by this program", {}}
                         : Answer{PW_TIMEOUT, "rank 0 let this rank in but not all ranks joined in time", {}};
  lock.unlock();
  stop();
  throw Error(why.status, why.text);
}

BootstrapClient::~BootstrapClient() {
  if (::getpid() != process_) {  // a forked child: the threads stayed in the parent, which remains the rank
    thread_.detach();
    if (server_) server_->forget();
    return;
  }
  stop();
}

void BootstrapClient::stop() {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wakeup_.notify();
  {
    std::unique_lock lock(mutex_);
    if (wait_for_change(changed_, lock, PW_FOREVER, [this] { return ended_; }) != PW_OK) hurried_ = true;
  }
  wakeup_.notify();
  thread_.join();
  while (server_ && !server_->ends_within(Interrupt::kSlice))
    if (hurried_ = hurried_ || Interrupt::ask(); hurried_) server_->hurry();
  server_.reset();
}

std::shared_ptr<void> BootstrapClient::on_loss(std::function<void(int)> callback) {
  auto handle = losses_.subscribe(std::move(callback));
  wakeup_.notify();
  return handle;
}

// ---- the thread ----

void BootstrapClient::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    log(LogLevel::error, format("rank {} stops following its team: {}", rank_, error.what()));
    server_ended();
  }
  peers_.close();
  std::lock_guard lock(mutex_);
  channel_.close();
  ended_ = true;
  changed_.notify_all();
}

void BootstrapClient::serve() {
  uint64_t until = PW_FOREVER;  // deadline of the goodbyes
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{wakeup_.descriptor(), POLLIN, 0}});
    peers_.write();
    {
      std::lock_guard lock(mutex_);
      changed_.notify_all();  // announces what the last round brought and what was written now
      if (leaving_ && until == PW_FOREVER) until = now_ns() + kGoodbyeTime;
      if (leaving_) say_goodbye(until);
      if (server_alive_) channel_.write();  // a broken connection is noticed by the next read
      const bool unsent = server_alive_ && channel_.unsent();
      // The server closes the connection when it has read the goodbye. Closing it here first could lose the
      // goodbye.
      if (leaving_ && (hurried_ || now_ns() >= until || (said_goodbye_ && !server_alive_))) break;
      polled.push_back({server_alive_ ? channel_.descriptor() : -1,
                        static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), 0});
    }
    uint64_t wake_at = until == PW_FOREVER || said_goodbye_ ? until : until - kGoodbyeTime / 2;
    wake_at = std::min({wake_at, watches_.next_report_ns(), peers_.due()});
    const size_t first_watch = polled.size();
    watches_.add_descriptors(polled);
    const size_t first_of_peers = polled.size();
    peers_.add_to(polled);
    ::poll(polled.data(), polled.size(), wake_at == PW_FOREVER ? -1 : poll_milliseconds(wake_at));

    if (polled[0].revents) wakeup_.clear();
    if (polled[1].revents) receive();
    const std::span all(polled);
    watches_.note_ended(all.subspan(first_watch, first_of_peers - first_watch));
    for (const PeerConnections::Event& event : peers_.serve(all.subspan(first_of_peers))) handle_event(event);
    check_watches();
    follow_next();
    losses_.deliver();
  }
}

/// Says goodbye to the server last, so that a rank that learns of this departure has everything that this
/// rank sent. The other ranks end their connections once they have read everything; the wait for them is
/// bounded.
void BootstrapClient::say_goodbye(uint64_t until) {
  const auto in_time = [&] { return now_ns() + kGoodbyeTime / 2 < until; };
  if (said_goodbye_ || (peers_.unsent() && in_time())) return;
  if (!std::exchange(left_peers_, true)) peers_.leave();
  if (peers_.unsent() && in_time()) return;
  peers_.finish();
  if (peers_.connected() && in_time()) return;
  said_goodbye_ = true;
  if (server_alive_) channel_.queue(Type::goodbye);
}

/// Reports processes that ended without their connection closing: a forked child may keep the socket open.
void BootstrapClient::check_watches() {
  while (true) {
    bool alive = false;
    {
      const std::lock_guard lock(mutex_);
      alive = server_alive_;
    }
    const auto ended = watches_.take_ended(alive);
    if (!ended) break;
    if (alive && !losses_.lost(*ended)) {
      const std::lock_guard lock(mutex_);
      channel_.queue(Type::lost, pack(Loss{static_cast<uint32_t>(*ended), How::died}));
    }
    const bool server_left = !alive && losses_.how(0) == How::departed;
    lose(*ended, server_left ? How::ended : How::died);
    if (*ended == 0) server_ended();
  }
  watches_.watch_next();
}

void BootstrapClient::receive() {
  std::unique_lock lock(mutex_);
  bool open = channel_.read();
  try {
    while (server_alive_) {
      const auto message = channel_.next(kMaxResult + 64);
      if (!message) break;
      lock.unlock();
      handle(*message);
      lock.lock();
    }
  } catch (const Error& error) {
    if (!lock.owns_lock()) lock.lock();
    log(LogLevel::error, format("rank {} leaves the bootstrap server: {}", rank_, error.what()));
    open = false;
  }
  lock.unlock();
  if (!open) server_ended();
}

void BootstrapClient::handle(const Message& message) {
  switch (message.type) {
    case Type::welcome: {
      const auto roster = parse_welcome(message.payload, static_cast<uint32_t>(size_));
      const uint64_t host = roster[static_cast<size_t>(rank_)].host, network = network_id();
      several_hosts_ = std::ranges::any_of(roster, [&](const Identity& each) { return each.host != host; });
      if (std::ranges::all_of(
              roster, [&](const Identity& each) { return each.host == host && each.network == network; }))
        peers_.leave_network();
      std::vector<int> ranks_of_host;
      for (int step = 1; step < size_; ++step)
        if (const int rank = (rank_ + step) % size_; roster[static_cast<size_t>(rank)].host == host)
          ranks_of_host.push_back(rank);
      roster_ = message.payload;
      watches_.begin(std::move(ranks_of_host), roster.front().host == host);
      std::lock_guard lock(mutex_);
      welcomed_ = true;
      changed_.notify_all();
      return;
    }
    case Type::refuse: {
      Refusal refusal = parse_refuse(message.payload);
      std::lock_guard lock(mutex_);
      refused_ = Answer{refusal.status, std::move(refusal.text), {}};
      changed_.notify_all();
      return;
    }
    case Type::result: {
      const Numbered part = parse_numbered(message.payload);
      return answer(part.sequence, {PW_OK, {}, Bytes(part.data.begin(), part.data.end())});
    }
    case Type::failure: {
      return handle_failure(parse_failure(message.payload));
    }
    case Type::abort:
      return handle_abort(message);
    case Type::lost: {
      const Loss loss = parse_loss(message.payload, static_cast<uint32_t>(size_));
      return lose(static_cast<int>(loss.rank), loss.how);
    }
    default:
      throw Error(PW_INVALID_ARGUMENT,
                  format("the bootstrap server sent a message of type {}", static_cast<int>(message.type)));
  }
}

void BootstrapClient::answer(uint64_t sequence, Answer received) {
  std::lock_guard lock(mutex_);
  if (under_way_ != sequence) return;  // an answer to a collective call that this rank has abandoned
  answer_ = std::move(received);
  changed_.notify_all();
}

Identity BootstrapClient::identity_of(int rank) const {
  return wire::parse_welcome_of(roster_, static_cast<uint32_t>(rank));
}

void BootstrapClient::server_ended() {
  {
    std::lock_guard lock(mutex_);
    if (!server_alive_) return;
    if (!leaving_) lose(0, How::died);
    server_alive_ = false;
    channel_.close();  // the server waits for this, so nothing that it has sent is lost
    if (!welcomed_ && !refused_)
      refused_ = Answer{PW_PEER_LOST, "rank 0 closed the connection while the team was being made", {}};
    changed_.notify_all();
    if (leaving_) return;
  }
  for (const auto& [type, payload] : reports()) peers_.send_all(type, payload);
}

/// Records a lost rank. Without a server, passes the report on along all connections.
void BootstrapClient::lose(int rank, How how) {
  if (!losses_.add(rank, how)) return;
  if (!server_alive_)
    peers_.send_all(Type::lost, std::make_shared<const Bytes>(pack(Loss{static_cast<uint32_t>(rank), how})));
}

}  // namespace pw
