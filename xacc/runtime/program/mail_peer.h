// The channel to one other rank. Only mail.cpp, posts.cpp and backlog.cpp include this.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "xacc/runtime/program/mail.h"

namespace pwx {

/// How often a word was posted. The sender overwrites the count, so that it never waits for the receiver.
struct Tally {
  uint64_t word, check, count;
};
/// A word without a tally, in a ring at the receiver, which reports the words that it has read.
struct Word {
  uint64_t sequence, word, check;
};
constexpr size_t kTallies = 64, kWords = 64;
/// Where the words are for which the ring was full: in the sender's memory, in a ring that is replaced by a
/// larger one when full. `check` covers all other members.
struct Backlog {
  uint64_t count, capacity, key_bytes, check;
  std::array<std::byte, (PW_KEY_MAX + 7) / 8 * 8> key;
};
/// The `check` of Tally and Word: data that is read while it is being put does not match it.
constexpr uint64_t checked(uint64_t word, uint64_t sequence) { return ~(word ^ (sequence << 32)); }

/// Reads memory that another rank may be writing, one word at a time.
template <typename Words>
Words read_words(const std::byte* at) {
  std::array<uint64_t, sizeof(Words) / sizeof(uint64_t)> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = __atomic_load_n(reinterpret_cast<const uint64_t*>(at) + i, __ATOMIC_ACQUIRE);
  return std::bit_cast<Words>(all);
}

// The memory at a rank for one other rank: its slots, then the words, the tallies and the backlog.
constexpr size_t kWordsAt = Mail::kSlots * Mail::kSlotBytes, kTalliesAt = kWordsAt + kWords * sizeof(Word);
constexpr size_t kBacklogAt = kTalliesAt + kTallies * sizeof(Tally);
constexpr size_t kPeerBytes = kBacklogAt + sizeof(Backlog);
constexpr auto kWaitSlice = std::chrono::microseconds(200);  // how long to wait for one of several ranks

/// Key number `number` of those that were appended.
peerway::Key mail_key_at(const peerway::Key& keys, size_t number);

/// One other rank.
struct Mail::Peer {
  /// The signals that this rank gets from the other one: slots that it filled, slots that it emptied, words
  /// that it posted, words of the ring and of the backlog that it has read, and that it ends the job.
  static constexpr size_t kSignals = 6;
  enum { filled, emptied, posted, looked_at, backlog_read, goodbye };
  int rank = 0;
  std::vector<peerway::Signal> signals{};
  peerway::Key keys{};  ///< of its memory for this rank, and of its signals that this rank notifies
  std::optional<peerway::Remote> room{};
  std::vector<peerway::Remote> far_signals{};
  std::byte* in = nullptr;   ///< what it sends to this rank
  std::byte* out = nullptr;  ///< what this rank sends to it
  uint64_t sent = 0, taken = 0, returned = 0;
  uint64_t known_filled = 0, known_emptied = 0;
  uint64_t words_sent = 0, words_taken = 0;
  uint64_t known_posted = 0;
  std::vector<Tally> tallies{};                 ///< of the words that this rank posted to it
  std::array<uint64_t, kTallies> waited_for{};  ///< of its posts, how many of each tally were waited for
  std::deque<uint64_t> words{};                 ///< arrived, but not waited for yet

  // Words that this rank posted while the ring was full. Earlier regions are kept, since the receiver may be
  // reading them.
  std::vector<peerway::Region> backlogs{};
  uint64_t backlog_capacity = 0, backlog_sent = 0;
  // The backlog of the other rank, and where its words arrive.
  std::optional<peerway::Remote> its_backlog{};
  std::optional<peerway::Region> its_words{};
  uint64_t its_capacity = 0, its_words_read = 0;

  void reach(peerway::Context& context) {
    if (room) return;
    room = context.import(mail_key_at(keys, 0));
    for (size_t s = 0; s < kSignals; ++s) far_signals.push_back(context.import(mail_key_at(keys, s + 1)));
  }
};

}  // namespace pwx
