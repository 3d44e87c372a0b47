#include "team/mesh.h"

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
constexpr uint64_t kWayPatience = 3'000'000'000;  // a host that is up answers a first or second attempt
constexpr uint64_t kNextRound = 20'000'000;       // before a rank is called once more
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
  constexpr size_t kRoom = 480;  // of a join message; a host with more addresses is found by the first ones
  for (const Address& address : at)
    if (const std::string text = to_string(address); listening.addresses.size() + text.size() < kRoom)
      listening.addresses += (listening.addresses.empty() ? "" : " ") + text;
  return listening;
}

Mesh::Mesh(int rank, int size, const Secret& secret, Listening listening)
    : rank_(rank), size_(size), secret_(secret), door_(door_secret(rank), std::move(listening.listeners)) {}

/// Each rank's door has a secret of its own, so that nobody can pass a call on to another rank.
Secret Mesh::door_secret(int of) const {
  return derive_secret(secret_, format("peerway door of rank {}", of));
}

Mesh::Link* Mesh::find(int rank) const {
  const auto found =
      std::ranges::find_if(links_, [&](const auto& link) { return link->rank == rank && !link->ended; });
  return found == links_.end() ? nullptr : found->get();
}

bool Mesh::linked(int rank) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [&](const auto& link) { return link->rank == rank; });
}

bool Mesh::unsent(int rank) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [&](const auto& link) { return link->rank == rank && link->unsent(); });
}

bool Mesh::link(int rank, const std::string& addresses, uint64_t deadline) {
  const std::lock_guard lock(mutex_);
  if (find(rank) != nullptr) return false;
  auto link = std::make_unique<Link>();
  link->rank = rank;
  link->until = deadline;
  std::istringstream words(addresses);
  for (std::string word; words >> word;) try {
      link->ways.push_back(parse_address(word, "where a rank listens"));
    } catch (const Error& error) {
      link->why = error.what();
    }
  call(*link);
  links_.push_back(std::move(link));
  return true;
}

/// Goes on to the next way at which somebody may listen. After the last one, a rank that had no place in its
/// queue or at its door is called once more after a pause.
void Mesh::call(Link& link) {
  link.channel.close();
  link.state = now_ns() < link.until ? State::calling : State::unanswered;
  if (link.state == State::unanswered) return;
  while (link.next_way < link.ways.size()) {
    const Address& way = link.ways[link.next_way++];
    try {
      bool connected = false;
      link.channel = Channel(begin_connect(way, connected));
      link.way_until = std::min(link.until, deadline_after(kWayPatience));
      if (connected) greet(link);
      return;
    } catch (const Error& error) {
      link.channel.close();
      link.full = link.full || error.status() == PW_TIMEOUT;
      link.why = error.what();
    }
  }
  if (!std::exchange(link.full, false)) link.state = State::unanswered;
  link.next_way = 0;
  link.way_until = std::min(link.until, deadline_after(kNextRound));
}

void Mesh::greet(Link& link) {
  const Address& way = link.ways[link.next_way - 1];
  check_connected(link.channel.descriptor(), way);
  if (const auto user = peer_user(link.channel.descriptor()); user && *user != ::geteuid())
    throw Error(PW_DENIED, format("the process at {} belongs to user {}", to_string(way), *user));
  link.state = State::called;
  link.way_until = link.until;  // its process may be slow
  link.hello = {static_cast<uint32_t>(rank_), static_cast<uint32_t>(size_), random_bytes<16>()};
  link.channel.seal_outgoing(hello_key(door_secret(link.rank)));
  link.channel.queue(Type::hello, pack(link.hello));
  link.channel.write();  // at once: who has said nothing may be put out of a full door
}

void Mesh::connected(Link& link) try { greet(link); } catch (const Error& error) {
  link.why = error.what();
  call(link);
}

void Mesh::queue(Link& link, Type type, SharedBytes payload) {
  if (link.state != State::open) {
    link.pending.emplace_back(type, std::move(payload));
    return;
  }
  link.channel.queue(type, std::move(payload));
  link.channel.write();  // that a connection is broken is told by the read that follows
}

bool Mesh::send(int rank, Type type, SharedBytes payload) {
  const std::lock_guard lock(mutex_);
  Link* link = find(rank);
  if (link != nullptr) queue(*link, type, std::move(payload));
  return link != nullptr;
}

void Mesh::send_all(Type type, const SharedBytes& payload) {
  const std::lock_guard lock(mutex_);
  for (const auto& link : links_)
    if (find(link->rank) == link.get()) queue(*link, type, payload);
}

// ---- the thread that serves it ----

void Mesh::leave_network() {
  const std::lock_guard lock(mutex_);
  door_.keep_first_listener();
}

void Mesh::write() {
  const std::lock_guard lock(mutex_);
  std::erase_if(links_, [](const auto& link) { return link->ended; });
  const uint64_t now = now_ns();
  for (const auto& link : links_) {
    const bool calls = link->state == State::calling || link->state == State::called;
    if (!calls || now < link->way_until) {
      link->channel.write();
    } else {
      if (link->channel.descriptor() >= 0) link->why = "nobody answers there";
      call(*link);
    }
  }
}

uint64_t Mesh::due() const {
  const std::lock_guard lock(mutex_);
  uint64_t due = PW_FOREVER;
  for (const auto& link : links_) {
    if (link->state == State::unanswered) due = 0;
    if (link->state == State::calling || link->state == State::called) due = std::min(due, link->way_until);
  }
  return due;
}

void Mesh::add_to(std::vector<pollfd>& polled) {
  const std::lock_guard lock(mutex_);
  for (const auto& link : links_) {
    const bool writes = link->state == State::calling || link->channel.unsent();
    polled.push_back({link->channel.descriptor(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  polled_ = links_.size();
  door_.add_to(polled);
}

std::vector<Mesh::Heard> Mesh::serve(std::span<const pollfd> polled) {
  const std::lock_guard lock(mutex_);
  std::vector<Heard> heard;
  for (size_t i = 0; i < polled_; ++i) {
    Link& link = *links_[i];
    if (link.state == State::calling && polled[i].revents != 0)
      connected(link);
    else if ((polled[i].revents & ~POLLOUT) != 0)
      receive(link, heard);
    if (link.state == State::unanswered) end(link, heard);
  }
  std::stable_partition(heard.begin(), heard.end(),
                        [](const Heard& each) { return each.what == What::message; });
  for (Door::Guest& guest : door_.serve(polled.subspan(polled_)))
    if (!leaving_) welcome(std::move(guest));
  return heard;
}

void Mesh::receive(Link& link, std::vector<Heard>& heard) {
  bool open = link.channel.read(), refused = false;
  try {
    while (auto message = link.channel.next(kMaxContribution + 64))
      if (!handle(link, *message, heard))
        heard.push_back({link.rank, What::message, std::move(*message), How::none, {}});
  } catch (const Error& error) {
    log(LogLevel::error,
        format("rank {} drops the connection with rank {}: {}", rank_, link.rank, error.what()));
    link.why = error.what();
    open = false;
    refused = true;
  }
  if (open) return;
  if (link.state != State::called || refused) return end(link, heard);
  link.full = true;  // it was put out of the door, unless nobody will listen there any more
  link.why = "the connection was closed before it was answered";
  call(link);
}

void Mesh::end(Link& link, std::vector<Heard>& heard) {
  link.ended = true;
  link.channel.close();
  // One that was never open says nothing of the rank, unless this rank had something to say to it. Who leaves
  // has asked the others to end theirs.
  if (leaving_ || (link.state != State::open && link.pending.empty())) return;
  const How how = link.orderly ? How::left : link.state == State::open ? How::died : How::ended;
  heard.push_back({link.rank, What::ended, {}, how, link.why});
}

/// What the connection itself needs; false: a message for the rank.
bool Mesh::handle(Link& link, const Message& message, std::vector<Heard>& heard) {
  if (link.state == State::called && message.type == Type::challenge) {
    const Nonce nonce = parse_challenge(message.payload);
    const Secret secret = door_secret(link.rank);
    if (!link.channel.opens_with(message, session_key(secret, "called", link.hello, nonce)))
      throw Error(PW_DENIED, "it does not know this job's secret");
    link.channel.seal_outgoing(session_key(secret, "caller", link.hello, nonce));
    link.channel.queue(Type::join);
  } else if (link.state == State::challenged && message.type == Type::join) {
    heard.push_back({link.rank, What::opened, {}, How::none, {}});
  } else if (link.state == State::open && message.type == Type::goodbye) {
    link.orderly = true;
    return true;
  } else if (link.state == State::open && message.type >= Type::failure) {
    return false;
  } else {
    throw Error(PW_INVALID_ARGUMENT,
                format("a message of type {} came out of turn", static_cast<int>(message.type)));
  }
  link.state = State::open;
  link.ways = {};
  for (auto& [type, payload] : link.pending) link.channel.queue(type, std::move(payload));
  link.pending.clear();
  return true;
}

void Mesh::welcome(Door::Guest guest) {
  if (guest.hello.size != static_cast<uint32_t>(size_)) return;
  auto link = std::make_unique<Link>();
  link->rank = static_cast<int>(guest.hello.rank);
  link->hello = guest.hello;
  link->channel = std::move(guest.channel);
  link->state = State::challenged;
  const Nonce nonce = random_bytes<16>();
  const Secret secret = door_secret(rank_);
  link->channel.seal_outgoing(session_key(secret, "called", link->hello, nonce));
  link->channel.seal_incoming(session_key(secret, "caller", link->hello, nonce));
  link->channel.queue(Type::challenge, pack(nonce));
  links_.push_back(std::move(link));
}

void Mesh::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  for (const auto& link : links_) queue(*link, Type::goodbye, std::make_shared<const Bytes>());
}

bool Mesh::unsent() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [](const auto& link) { return link->unsent(); });
}

void Mesh::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& link : links_)
    if (!std::exchange(link->finished, true)) link->channel.finish();
}

bool Mesh::linked() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_,
                             [](const auto& link) { return link->state == State::open && !link->ended; });
}

void Mesh::close() {
  const std::lock_guard lock(mutex_);
  links_.clear();
  door_.close();
}

}  // namespace pw
