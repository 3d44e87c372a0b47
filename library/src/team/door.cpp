#include "team/door.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/format.h"
#include "base/random.h"

namespace pw {

using namespace wire;

namespace {

constexpr size_t kPlaces = 128;        // for strangers: each holds a descriptor of rank 0
constexpr int kTakenInATurn = 64;      // so that a flood of connections does not keep the hub from its ranks
constexpr useconds_t kPause = 10'000;  // us: rank 0 has no descriptor left, and poll() would return at once

uint32_t random_seed() {
  const auto bytes = random_bytes<4>();
  return ByteReader(bytes, "random bytes").get<uint32_t>();
}

}  // namespace

Door::Door(const Secret& secret, std::vector<Descriptor> listeners)
    : hello_key_(hello_key(secret)), listeners_(std::move(listeners)), random_(random_seed()) {}

void Door::add_to(std::vector<pollfd>& polled) const {
  for (const Stranger& stranger : strangers_) polled.push_back({stranger.channel.descriptor(), POLLIN, 0});
  for (const Descriptor& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
}

std::vector<Door::Guest> Door::serve(std::span<const pollfd> polled) {
  std::vector<Guest> guests;
  const size_t waiting = strangers_.size();
  for (size_t i = 0; i < waiting; ++i)
    if (polled[i].revents) hear(strangers_[i], guests);
  std::erase_if(strangers_, [](const Stranger& stranger) { return stranger.gone; });
  for (size_t i = 0; i < listeners_.size(); ++i)
    if (polled[waiting + i].revents) take_in(listeners_[i], guests);
  return guests;
}

void Door::take_in(const Descriptor& listener, std::vector<Guest>& guests) {
  for (int taken = 0; taken < kTakenInATurn; ++taken) {
    Stranger stranger;
    Descriptor socket = accept_from(listener, stranger.source);
    if (!socket) {
      const int error = errno;
      if (error == ECONNABORTED || error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      // Descriptors or memory are short. A stranger's place may be all that is missing.
      note(format("rank 0 cannot take in connections{}", errno_text(error)));
      if (strangers_.empty())
        ::usleep(kPause);
      else
        make_room();
      return;
    }
    if (stranger.source.user && *stranger.source.user != ::geteuid()) {
      note(format("a process of user {} (only user {} may join)", *stranger.source.user, ::geteuid()));
      continue;
    }
    stranger.channel = Channel(std::move(socket));
    // A rank's hello lies there by now, unless its host is far or busy: it needs no place at all.
    hear(stranger, guests);
    if (stranger.gone) continue;
    if (strangers_.size() >= kPlaces) make_room();
    strangers_.push_back(std::move(stranger));
  }
}

void Door::hear(Stranger& stranger, std::vector<Guest>& guests) {
  try {
    const bool open = stranger.channel.read(kMaxHello);
    if (const auto message = stranger.channel.next(kHelloBytes)) {
      const Hello hello = check(*message);
      trust(stranger.channel.descriptor());
      guests.push_back({std::move(stranger.channel), hello});
      stranger.gone = true;
    } else {
      stranger.gone = !open;
    }
  } catch (const Error& error) {
    note(error.what());
    // Whoever means well and was started wrongly shall know. What does not fit into the socket is not kept.
    stranger.channel.queue(Type::refuse, pack(Refusal{error.status(), error.what()}));
    stranger.channel.write();
    stranger.gone = true;
  }
  if (stranger.gone) stranger.channel.close();
}

Hello Door::check(const Message& message) {
  if (message.type != Type::hello)
    throw Error(PW_INVALID_ARGUMENT,
                format("a message of type {} came first", static_cast<int>(message.type)));
  if (!equal_digests(message.seal, seal(hello_key_, 0, message.header, message.payload)))
    throw Error(PW_DENIED, "a message was not sealed with this job's secret");
  const Hello hello = parse_hello(message.payload);
  if (!greeted_.insert(hello.nonce).second)
    throw Error(PW_DENIED, format("a hello of rank {} came a second time", hello.rank));
  return hello;
}

/// Puts out one of those from wherever most come from, so that one host's flood takes no place from another's
/// ranks. Which one is left to chance: the oldest would always be the one whose hello is about to come.
void Door::make_room() {
  std::map<std::array<std::byte, 16>, size_t> counts;
  for (const Stranger& stranger : strangers_) ++counts[stranger.source.host];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  size_t chosen = random_() % most->second;
  const auto victim = std::ranges::find_if(strangers_, [&](const Stranger& stranger) {
    return stranger.source.host == most->first && chosen-- == 0;
  });
  strangers_.erase(victim);
  note("others came, and it had said nothing yet");
}

void Door::keep_first_listener() {
  if (listeners_.size() > 1) listeners_.resize(1);
}

void Door::close() {
  listeners_.clear();
  strangers_.clear();
}

void Door::note(const std::string& why) {
  ++refused_;
  last_refused_ = why;
}

std::string Door::refusals() const {
  if (refused_ == 0) return {};
  return format(". {} connections were refused, the last because: {}", refused_, last_refused_);
}

}  // namespace pw
