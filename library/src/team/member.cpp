#include "team/member.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/config.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "team/change.h"

namespace pw {

using namespace wire;

namespace {

/// Ranks make their teams in the same order, if several.
std::string next_trace_name() {
  static std::atomic<int> teams{0};
  const int number = ++teams;
  return number == 1 ? "team" : format("team {}", number);
}

}  // namespace

Identity own_identity(std::string addresses) {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return {::getpid(), host_id(config("host_id")), network_id(), name, std::move(addresses)};
}

Member::Member(int rank, int size, const Secret& secret, Channel channel, Listening listening,
               std::unique_ptr<Hub> hub, uint64_t deadline)
    : rank_(rank),
      size_(size),
      job_(first_word(siphash(secret, view_of("peerway job")))),
      secret_(derive_secret(secret, "peerway ranks")),
      process_(::getpid()),
      hub_(std::move(hub)),
      losses_(size, some_lost_),
      watches_(rank, losses_, [this](int each) { return identity_of(each); }),
      mesh_(rank, size, secret_, std::move(listening)),
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

Member::~Member() {
  if (::getpid() != process_) {  // a forked child: the threads stayed with the parent, and so does the rank
    thread_.detach();
    if (hub_) hub_->forget();
    return;
  }
  stop();
}

void Member::stop() {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.ring();
  {
    std::unique_lock lock(mutex_);
    if (wait_for_change(changed_, lock, PW_FOREVER, [this] { return ended_; }) != PW_OK) hurried_ = true;
  }
  wake_.ring();
  thread_.join();
  while (hub_ && !hub_->ends_within(Interrupt::kSlice))
    if (hurried_ = hurried_ || Interrupt::ask(); hurried_) hub_->hurry();
  hub_.reset();
}

std::shared_ptr<void> Member::on_loss(std::function<void(int)> callback) {
  auto handle = losses_.subscribe(std::move(callback));
  wake_.ring();
  return handle;
}

// ---- the thread ----

void Member::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    log(LogLevel::error, format("rank {} stops following its team: {}", rank_, error.what()));
    hub_ended();
  }
  mesh_.close();
  std::lock_guard lock(mutex_);
  channel_.close();
  ended_ = true;
  changed_.notify_all();
}

void Member::serve() {
  uint64_t until = PW_FOREVER;  // of the farewell
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{wake_.descriptor(), POLLIN, 0}});
    mesh_.write();
    {
      std::lock_guard lock(mutex_);
      changed_.notify_all();  // of what the last turn brought, and of what is written now
      if (leaving_ && until == PW_FOREVER) until = now_ns() + kFarewell;
      if (leaving_) say_goodbye(until);
      if (hub_alive_) channel_.write();  // a broken connection is told by the read that follows
      const bool unsent = hub_alive_ && channel_.unsent();
      // The hub closes the connection when it has read the goodbye. Closing it first could lose that.
      if (leaving_ && (hurried_ || now_ns() >= until || (said_goodbye_ && !hub_alive_))) break;
      polled.push_back(
          {hub_alive_ ? channel_.descriptor() : -1, static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), 0});
    }
    uint64_t wake_at = until == PW_FOREVER || said_goodbye_ ? until : until - kFarewell / 2;
    wake_at = std::min({wake_at, watches_.due(), mesh_.due()});
    const size_t first_watch = polled.size();
    watches_.add_to(polled);
    const size_t first_of_mesh = polled.size();
    mesh_.add_to(polled);
    ::poll(polled.data(), polled.size(), wake_at == PW_FOREVER ? -1 : poll_milliseconds(wake_at));

    if (polled[0].revents) wake_.clear();
    if (polled[1].revents) receive();
    const std::span all(polled);
    watches_.hear(all.subspan(first_watch, first_of_mesh - first_watch));
    for (const Mesh::Heard& heard : mesh_.serve(all.subspan(first_of_mesh))) hear(heard);
    check_watches();
    follow_next();
    losses_.deliver();
  }
}

/// To the hub last: who hears from it that this rank has left has all that this rank wrote. The others end
/// their connections once they have read all. A rank that takes nothing any more is not waited for to the
/// end.
void Member::say_goodbye(uint64_t until) {
  const auto in_time = [&] { return now_ns() + kFarewell / 2 < until; };
  if (said_goodbye_ || (mesh_.unsent() && in_time())) return;
  if (!std::exchange(left_mesh_, true)) mesh_.leave();
  if (mesh_.unsent() && in_time()) return;
  mesh_.finish();
  if (mesh_.linked() && in_time()) return;
  said_goodbye_ = true;
  if (hub_alive_) channel_.queue(Type::goodbye);
}

/// A process that ended without a word from the hub: its socket may live on in a child that it forked.
void Member::check_watches() {
  while (true) {
    bool alive = false;
    {
      const std::lock_guard lock(mutex_);
      alive = hub_alive_;
    }
    const auto ended = watches_.ended(alive);
    if (!ended) break;
    if (alive && !losses_.lost(*ended)) {
      const std::lock_guard lock(mutex_);
      channel_.queue(Type::lost, pack(Loss{static_cast<uint32_t>(*ended), How::died}));
    }
    const bool hub_left = !alive && losses_.how(0) == How::left;
    lose(*ended, hub_left ? How::ended : How::died);
    if (*ended == 0) hub_ended();
  }
  watches_.watch_next();
}

void Member::receive() {
  std::unique_lock lock(mutex_);
  bool open = channel_.read();
  try {
    while (hub_alive_) {
      const auto message = channel_.next(kMaxResult + 64);
      if (!message) break;
      lock.unlock();
      handle(*message);
      lock.lock();
    }
  } catch (const Error& error) {
    if (!lock.owns_lock()) lock.lock();
    log(LogLevel::error, format("rank {} leaves the hub: {}", rank_, error.what()));
    open = false;
  }
  lock.unlock();
  if (!open) hub_ended();
}

void Member::handle(const Message& message) {
  switch (message.type) {
    case Type::welcome: {
      const auto roster = parse_welcome(message.payload, static_cast<uint32_t>(size_));
      const uint64_t host = roster[static_cast<size_t>(rank_)].host, network = network_id();
      several_hosts_ = std::ranges::any_of(roster, [&](const Identity& each) { return each.host != host; });
      if (std::ranges::all_of(
              roster, [&](const Identity& each) { return each.host == host && each.network == network; }))
        mesh_.leave_network();
      std::vector<int> mates;
      for (int step = 1; step < size_; ++step)
        if (const int rank = (rank_ + step) % size_; roster[static_cast<size_t>(rank)].host == host)
          mates.push_back(rank);
      roster_ = message.payload;
      watches_.begin(std::move(mates), roster.front().host == host);
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
      return hear_failure(parse_failure(message.payload));
    }
    case Type::object:
      return hear_objection(message);
    case Type::lost: {
      const Loss loss = parse_loss(message.payload, static_cast<uint32_t>(size_));
      return lose(static_cast<int>(loss.rank), loss.how);
    }
    default:
      throw Error(PW_INVALID_ARGUMENT,
                  format("the hub sent a message of type {}", static_cast<int>(message.type)));
  }
}

void Member::answer(uint64_t sequence, Answer given) {
  std::lock_guard lock(mutex_);
  if (under_way_ != sequence) return;  // one that was given up
  answer_ = std::move(given);
  changed_.notify_all();
}

Identity Member::identity_of(int rank) const {
  return wire::parse_welcome_of(roster_, static_cast<uint32_t>(rank));
}

void Member::hub_ended() {
  {
    std::lock_guard lock(mutex_);
    if (!hub_alive_) return;
    if (!leaving_) lose(0, How::died);
    hub_alive_ = false;
    channel_.close();  // it waits for that, so that nothing that it has sent is lost
    if (!welcomed_ && !refused_)
      refused_ = Answer{PW_PEER_LOST, "rank 0 closed the connection while the team was being made", {}};
    changed_.notify_all();
    if (leaving_) return;
  }
  for (const auto& [type, payload] : news()) mesh_.send_all(type, payload);
}

/// Without a hub, the news goes on along all connections.
void Member::lose(int rank, How how) {
  if (!losses_.add(rank, how)) return;
  if (!hub_alive_)
    mesh_.send_all(Type::lost, std::make_shared<const Bytes>(pack(Loss{static_cast<uint32_t>(rank), how})));
}

}  // namespace pw
