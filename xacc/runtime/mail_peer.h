// What mail has of one other rank. Of mail.cpp and words.cpp alone.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "xacc/runtime/mail.h"

namespace pwx {

/// How often a word was posted. The sender overwrites the count, so that it never waits for the receiver.
struct Tally {
  uint64_t word, check, count;
};
/// A word that has no tally, in a ring. The receiver says which it has looked at.
struct Word {
  uint64_t sequence, word, check;
};
constexpr size_t kTallies = 64, kWords = 64;
/// `check` of both: what is read while it is put is not taken.
constexpr uint64_t checked(uint64_t word, uint64_t sequence) { return ~(word ^ (sequence << 32)); }

// A rank's room for one other: its slots, then the words and the tallies.
constexpr size_t kWordsAt = Mail::kSlots * Mail::kSlotBytes, kTalliesAt = kWordsAt + kWords * sizeof(Word);
constexpr size_t kRoom = kTalliesAt + kTallies * sizeof(Tally);
constexpr auto kPatience = std::chrono::microseconds(200);  // with one of several that are waited for

/// The `number`-th key of those that were appended.
peerway::Key mail_key_at(const peerway::Key& keys, size_t number);

/// One other rank.
struct Mail::Peer {
  /// What it raises here: slots that it filled, slots that it emptied, words that it posted, words that it
  /// has looked at, and that it ends the job.
  static constexpr size_t kSignals = 5;
  enum { filled, emptied, posted, looked_at, farewell };
  std::vector<peerway::Signal> signals;
  peerway::Key keys;  ///< of its room, and of the signals of it that this rank raises
  std::optional<peerway::Remote> room{};
  std::vector<peerway::Remote> raises{};
  std::byte* in = nullptr;   ///< what it sends to this rank
  std::byte* out = nullptr;  ///< what this rank sends to it
  uint64_t sent = 0, taken = 0, returned = 0;
  uint64_t known_filled = 0, known_emptied = 0;
  uint64_t words_sent = 0, words_taken = 0;
  uint64_t known_posted = 0;
  std::vector<Tally> tallies{};                 ///< of what this rank posted to it
  std::array<uint64_t, kTallies> waited_for{};  ///< of what it posted: how many of each tally
  std::deque<uint64_t> words{};                 ///< came and fit nothing yet

  void reach(peerway::Context& context) {
    if (room) return;
    room = context.import(mail_key_at(keys, 0));
    for (size_t s = 0; s < kSignals; ++s) raises.push_back(context.import(mail_key_at(keys, s + 1)));
  }
};

}  // namespace pwx
