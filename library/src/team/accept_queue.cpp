#include "team/accept_queue.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/format.h"
#include "base/random.h"

namespace pw {

using namespace wire;

namespace {

constexpr size_t kPlaces = 128;        // pending connections: each holds a descriptor of rank 0
constexpr int kAcceptedInATurn = 64;   // so that a flood of connections cannot keep the server from its ranks
constexpr useconds_t kPause = 10'000;  // us: used when rank 0 has no descriptor left, since poll() would
                                       // return at once

uint32_t random_seed() {
  const auto bytes = random_bytes<4>();
  return ByteReader(bytes, "random bytes").get<uint32_t>();
}

}  // namespace

AcceptQueue::AcceptQueue(const Secret& secret, std::vector<Descriptor> listeners)
    : hello_key_(hello_key(secret)), listeners_(std::move(listeners)), random_(random_seed()) {}

void AcceptQueue::add_to(std::vector<pollfd>& polled) const {
  for (const Pending& pending : pending_) polled.push_back({pending.channel.descriptor(), POLLIN, 0});
  for (const Descriptor& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
}

std::vector<AcceptQueue::Authenticated> AcceptQueue::serve(std::span<const pollfd> polled) {
  std::vector<Authenticated> authenticated;
  const size_t waiting = pending_.size();
  for (size_t i = 0; i < waiting; ++i)
    if (polled[i].revents) read_from(pending_[i], authenticated);
  std::erase_if(pending_, [](const Pending& pending) { return pending.gone; });
  for (size_t i = 0; i < listeners_.size(); ++i)
    if (polled[waiting + i].revents) accept_new(listeners_[i], authenticated);
  return authenticated;
}

void AcceptQueue::accept_new(const Descriptor& listener, std::vector<Authenticated>& authenticated) {
  for (int accepted = 0; accepted < kAcceptedInATurn; ++accepted) {
    Pending pending;
    Descriptor socket = accept_from(listener, pending.source);
    if (!socket) {
      const int error = errno;
      if (error == ECONNABORTED || error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      // Descriptors or memory are short. Evicting one pending connection may free enough.
      count_refusal(format("rank 0 cannot take in connections{}", errno_text(error)));
      if (pending_.empty())
        ::usleep(kPause);
      else
        evict_one();
      return;
    }
    if (pending.source.user && *pending.source.user != ::geteuid()) {
      count_refusal(
          format("a process of user {} (only user {} may join)", *pending.source.user, ::geteuid()));
      continue;
    }
    pending.channel = Channel(std::move(socket));
    // Usually a rank's hello has arrived by now. Then the connection needs no place at all.
    read_from(pending, authenticated);
    if (pending.gone) continue;
    if (pending_.size() >= kPlaces) evict_one();
    pending_.push_back(std::move(pending));
  }
}

void AcceptQueue::read_from(Pending& pending, std::vector<Authenticated>& authenticated) {
  try {
    const bool open = pending.channel.read(kMaxHello);
    if (const auto message = pending.channel.next(kHelloBytes)) {
      const Hello hello = check(*message);
      trust(pending.channel.descriptor());
      authenticated.push_back({std::move(pending.channel), hello});
      pending.gone = true;
    } else {
      pending.gone = !open;
    }
  } catch (const Error& error) {
    count_refusal(error.what());
    // Informs a rank that was started wrongly. The refusal is dropped if it does not fit into the socket.
    pending.channel.queue(Type::refuse, pack(Refusal{error.status(), error.what()}));
    pending.channel.write();
    pending.gone = true;
  }
  if (pending.gone) pending.channel.close();
}

Hello AcceptQueue::check(const Message& message) {
  if (message.type != Type::hello)
    throw Error(PW_INVALID_ARGUMENT,
                format("a message of type {} came first", static_cast<int>(message.type)));
  if (!equal_digests(message.seal, seal(hello_key_, 0, message.header, message.payload)))
    throw Error(PW_DENIED, "a message was not sealed with this job's secret");
  const Hello hello = parse_hello(message.payload);
  if (!used_nonces_.insert(hello.nonce).second)
    throw Error(PW_DENIED, format("a hello of rank {} came a second time", hello.rank));
  return hello;
}

/// Evicts a pending connection of the host that has most of them, so that a flood from one host takes no
/// place from the ranks of another. The choice is random: the oldest connection is the one whose hello is
/// about to arrive.
void AcceptQueue::evict_one() {
  std::map<std::array<std::byte, 16>, size_t> counts;
  for (const Pending& pending : pending_) ++counts[pending.source.host];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  size_t chosen = random_() % most->second;
  const auto victim = std::ranges::find_if(
      pending_, [&](const Pending& pending) { return pending.source.host == most->first && chosen-- == 0; });
  pending_.erase(victim);
  count_refusal("others came, and it had said nothing yet");
}

void AcceptQueue::keep_first_listener() {
  if (listeners_.size() > 1) listeners_.resize(1);
}

void AcceptQueue::close() {
  listeners_.clear();
  pending_.clear();
}

void AcceptQueue::count_refusal(const std::string& why) {
  ++refused_;
  last_refused_ = why;
}

std::string AcceptQueue::refusals() const {
  if (refused_ == 0) return {};
  return format(". {} connections were refused, the last because: {}", refused_, last_refused_);
}

}  // namespace pw
