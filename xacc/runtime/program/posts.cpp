// The words of mail: posts, and the notice that a rank ends the job.
#include <algorithm>
#include <array>
#include <cstring>

#include "xacc/runtime/program/mail_peer.h"

namespace pwx {

using peerway::check;

namespace {

/// Takes one matching post from the tallies of a rank; false if there is none.
bool take_from_tallies(const std::byte* room, std::array<uint64_t, kTallies>& waited_for,
                       std::optional<uint64_t> word) {
  if (room == nullptr) return false;
  for (size_t number = 0; number < kTallies; ++number) {
    const auto tally = read_words<Tally>(room + kTalliesAt + number * sizeof(Tally));
    if (tally.check != checked(tally.word, 0)) return false;  // none yet
    if (tally.count == waited_for[number] || (word && tally.word != *word)) continue;
    ++waited_for[number];
    return true;
  }
  return false;
}

}  // namespace

void Mail::post(int rank, uint64_t word) {
  if (rank == rank_ || peers_.empty()) {
    if (peers_.empty()) peers_.emplace_back(std::make_unique<Peer>());
    peers_[static_cast<size_t>(rank)]->words.push_back(word);
    return;
  }
  Peer& to = peer(rank);
  check(context_.flush(rank));  // puts to it come before the post
  auto tally = std::ranges::find(to.tallies, word, &Tally::word);
  if (tally == to.tallies.end() && to.tallies.size() < kTallies)
    tally = to.tallies.insert(tally, {word, checked(word, 0), 0});
  if (tally != to.tallies.end()) {
    ++tally->count;
    const auto number = static_cast<size_t>(tally - to.tallies.begin());
    return put_after_slots(to, kTalliesAt + number * sizeof *tally, &*tally, sizeof *tally);
  }
  if (to.words_sent >= to.signals[Peer::looked_at].value() + kWords) return add_to_backlog(to, word);
  const Word next{to.words_sent + 1, word, checked(word, to.words_sent + 1)};
  put_after_slots(to, kWordsAt + to.words_sent++ % kWords * sizeof next, &next, sizeof next);
}

/// Puts data after the slots of a peer.
void Mail::put_after_slots(Peer& to, size_t at, const void* data, size_t bytes) {
  std::memcpy(to.out + at, data, bytes);
  const auto base = static_cast<size_t>(rank_) * kPeerBytes;
  const auto local = static_cast<size_t>(to.out - static_cast<std::byte*>(out_->address()));
  check(context_.put(to.room->span(base + at, bytes), out_->span(local + at, bytes),
                     peerway::notify(to.far_signals[Peer::posted])));
}

void Mail::say_goodbye() noexcept {
  for (size_t to = 0; to < peers_.size(); ++to) try {
      if (static_cast<int>(to) != rank_ && !peers_[to]->signals.empty())
        static_cast<void>(
            context_.notify(peerway::notify(peer(static_cast<int>(to)).far_signals[Peer::goodbye])));
    } catch (const peerway::Error&) {  // it is lost, too
    }
  if (peers_.size() > 1) static_cast<void>(context_.flush(peerway::any_rank, std::chrono::milliseconds(200)));
}

bool Mail::goodbye_heard() const noexcept {
  try {
    return std::ranges::any_of(peers_, [](const auto& peer) {
      return !peer->signals.empty() && peer->signals[Peer::goodbye].value() > 0;
    });
  } catch (const peerway::Error&) {
    return false;
  }
}

void Mail::look_for_words(Peer& from) {
  if (from.signals.empty()) return;  // this rank itself, which is alone
  const uint64_t come = from.signals[Peer::posted].value();
  if (come == from.known_posted) return;
  from.known_posted = come;
  read_backlog(from);
  const uint64_t before = from.words_taken;
  for (;;) {
    const Word next = read_words<Word>(from.in + kWordsAt + from.words_taken % kWords * sizeof(Word));
    if (next.sequence != from.words_taken + 1 || next.check != checked(next.word, next.sequence)) break;
    from.words.push_back(next.word);
    ++from.words_taken;
  }
  if (from.words_taken == before) return;
  from.reach(context_);
  check(context_.notify(peerway::notify(from.far_signals[Peer::looked_at], from.words_taken - before)));
}

void Mail::look_for_words() {
  for (size_t from = 0; from < peers_.size(); ++from)
    if (static_cast<int>(from) != rank_) look_for_words(*peers_[from]);
}

void Mail::wait(int rank, std::optional<uint64_t> word) {
  if (peers_.empty()) peers_.emplace_back(std::make_unique<Peer>());
  for (;;) {
    for (size_t from = 0; from < peers_.size(); ++from) {
      if (rank >= 0 && from != static_cast<size_t>(rank)) continue;
      Peer& peer = *peers_[from];
      if (static_cast<int>(from) != rank_) {
        look_for_words(peer);
        if (take_from_tallies(peer.in, peer.waited_for, word)) return;
      }
      const auto match = word ? std::ranges::find(peer.words, *word) : peer.words.begin();
      if (match == peer.words.end()) continue;
      peer.words.erase(match);
      return;
    }
    if (rank == rank_ || peers_.size() == 1)
      throw peerway::Error(peerway::Status::invalid_argument,
                           "peerway: a wait for a post of this node itself, which it has not made");
    // For any rank: look at each one in turn for a while.
    const size_t next =
        rank >= 0 ? static_cast<size_t>(rank) : (static_cast<size_t>(rank_) + 1) % peers_.size();
    Peer& peer = *peers_[next];
    const peerway::Status status =
        peer.signals[Peer::posted].wait(peer.known_posted + 1, rank >= 0 ? peerway::forever : kWaitSlice);
    if (status != peerway::Status::timeout) check(status);
  }
}

}  // namespace pwx
