// The words of mail: posts, and that a rank ends the job.
#include <algorithm>
#include <cstring>

#include "xacc/mail_peer.h"

namespace pwx {

using peerway::check;

void Mail::post(int rank, uint64_t word) {
  if (rank == rank_ || peers_.empty()) {
    if (peers_.empty()) peers_.emplace_back(std::make_unique<Peer>());
    peers_[static_cast<size_t>(rank)]->words.push_back(word);
    return;
  }
  Peer& to = peer(rank);
  check(context_.flush(rank));  // puts to it come before the post
  if (to.words_sent >= kWords) check(to.signals[Peer::looked_at].wait(to.words_sent + 1 - kWords));
  const size_t at = kSlots * kSlotBytes + to.words_sent++ % kWords * sizeof word;
  std::memcpy(to.out + at, &word, sizeof word);
  const auto base = static_cast<size_t>(rank_) * kRoom;
  const auto local = static_cast<size_t>(to.out - static_cast<std::byte*>(out_->address()));
  check(context_.put(to.room->span(base + at, sizeof word), out_->span(local + at, sizeof word),
                     peerway::raise(to.raises[Peer::posted])));
}

void Mail::say_farewell() noexcept {
  for (size_t to = 0; to < peers_.size(); ++to) try {
      if (static_cast<int>(to) != rank_ && !peers_[to]->signals.empty())
        static_cast<void>(context_.raise(peerway::raise(peer(static_cast<int>(to)).raises[Peer::farewell])));
    } catch (const peerway::Error&) {  // it is lost, too
    }
  if (peers_.size() > 1) static_cast<void>(context_.flush(peerway::any_rank, std::chrono::milliseconds(200)));
}

bool Mail::farewell_heard() const noexcept {
  try {
    return std::ranges::any_of(peers_, [](const auto& peer) {
      return !peer->signals.empty() && peer->signals[Peer::farewell].value() > 0;
    });
  } catch (const peerway::Error&) {
    return false;
  }
}

void Mail::look_for_words(Peer& from) {
  if (from.signals.empty()) return;  // this rank itself, alone
  const uint64_t come = from.signals[Peer::posted].value();
  if (come == from.words_taken) return;
  from.reach(context_);
  const uint64_t before = from.words_taken;
  for (; from.words_taken < come; ++from.words_taken) {
    uint64_t word = 0;
    std::memcpy(&word, from.in + kSlots * kSlotBytes + from.words_taken % kWords * sizeof word, sizeof word);
    from.words.push_back(word);
  }
  check(context_.raise(peerway::raise(from.raises[Peer::looked_at], come - before)));
}

void Mail::wait(int rank, std::optional<uint64_t> word) {
  if (peers_.empty()) peers_.emplace_back(std::make_unique<Peer>());
  for (;;) {
    for (size_t from = 0; from < peers_.size(); ++from) {
      if (rank >= 0 && from != static_cast<size_t>(rank)) continue;
      Peer& peer = *peers_[from];
      if (static_cast<int>(from) != rank_) look_for_words(peer);
      const auto found = word ? std::ranges::find(peer.words, *word) : peer.words.begin();
      if (found == peer.words.end()) continue;
      peer.words.erase(found);
      return;
    }
    if (rank == rank_ || peers_.size() == 1)
      throw peerway::Error(peerway::Status::invalid_argument,
                           "peerway: a wait for a post of this node itself, which it has not made");
    // Of any rank: each in turn for a while.
    const size_t next =
        rank >= 0 ? static_cast<size_t>(rank) : (static_cast<size_t>(rank_) + 1) % peers_.size();
    Peer& peer = *peers_[next];
    const peerway::Status status =
        peer.signals[Peer::posted].wait(peer.words_taken + 1, rank >= 0 ? peerway::forever : kPatience);
    if (status != peerway::Status::timeout) check(status);
  }
}

}  // namespace pwx
