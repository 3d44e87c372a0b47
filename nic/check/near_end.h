// The near end of the conformance tests: an open endpoint with its memory, connected to the far ends, and
// functions that the tests share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "nic/check/end.h"
#include "nic/check/random.h"
#include "nic/check/stand.h"
#include "nic/check/talk.h"

namespace pw::nic::check {

/// The word that marks round `v`: its halves are equal, so that a torn word is recognised.
inline uint64_t word_of(uint64_t v) { return v << 32 | (v & 0xffffffffu); }
inline bool torn(uint64_t word) { return word >> 32 != (word & 0xffffffffu); }

/// Runs `turn` again and again in a second thread during the lifetime of this object.
class InBackground {
 public:
  template <typename Turn>
  explicit InBackground(Turn turn)
      : thread_([this, turn]() mutable {
          while (!stop_.load(std::memory_order_relaxed)) turn();
        }) {}
  ~InBackground() {
    stop_ = true;
    thread_.join();
  }
  InBackground(const InBackground&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class NearEnd {
 public:
  /// Throws Broken if the endpoint, its memory, or that of the far ends cannot be set up.
  explicit NearEnd(Stand& stand);
  NearEnd(const NearEnd&) = delete;

  static constexpr uint64_t kRoom = Arena::kRoom;

  End end;
  [[nodiscard]] Stand& stand() const { return stand_; }
  [[nodiscard]] const pw_nic_info& info() const { return end.info(); }
  [[nodiscard]] uint64_t largest() const {
    return std::min(info().largest, kRoom);
  }  ///< of an operation here
  [[nodiscard]] uint64_t largest(uint64_t limit) const { return std::min(largest(), limit) / 8 * 8; }

  // Registered memory of this end: sources of puts, and targets of gets.
  [[nodiscard]] std::byte* at(uint64_t offset) { return room_.data() + offset; }
  [[nodiscard]] uint64_t* word(uint64_t offset) { return reinterpret_cast<uint64_t*>(at(offset)); }
  [[nodiscard]] pw_nic_memory* memory() const { return memory_; }

  // The far ends, 1 to kFars.
  [[nodiscard]] Arena& arena(uint32_t rank) const { return stand_.arena[rank]; }
  [[nodiscard]] const pw_nic_address& address(uint32_t rank) const { return ranks_[rank].address; }
  [[nodiscard]] const pw_nic_key& key(uint32_t rank) const { return ranks_[rank].key; }
  [[nodiscard]] uint32_t number(uint32_t rank) const { return ranks_[rank].number; }
  [[nodiscard]] pw_nic_peer* peer(uint32_t rank) const { return ranks_[rank].peer; }
  [[nodiscard]] pw_nic_remote* remote(uint32_t rank) const { return ranks_[rank].remote; }
  /// Fills the arena with poison, and has it registered and imported again.
  void renew(uint32_t rank);
  void release(uint32_t rank);
  void disconnect(uint32_t rank);
  void connect(uint32_t rank);  ///< also imports its key
  void kill(uint32_t rank);
  /// Releases everything at all ends. Throws Broken.
  void close();

  /// Throw Broken if the far end is gone or does not answer.
  Reply ask(uint32_t rank, const Command& request) const;
  void tell(uint32_t rank, const Command& request) const;
  Reply hear(uint32_t rank) const;
  /// Whether hear() would return at once, with an answer or because the far end is gone.
  [[nodiscard]] bool has_answered(uint32_t rank) const { return answers_within(rank, 0); }

  /// Like those of End, from or to this end's memory.
  pw_nic_status put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  pw_nic_status put_copied(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  pw_nic_status get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done);
  /// The same; throw Broken if the operation is not accepted.
  void must_put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  void must_get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done);

  /// Waits until `holds()` is true; returns false if the deadline passes. If `polls` is false nobody calls
  /// the plugin meanwhile.
  template <typename Condition>
  bool await(Condition&& holds, bool polls = true);
  /// Waits until the word has that value. Throws Broken: "<subject> has not arrived".
  void arrive(uint32_t rank, uint64_t offset, uint64_t value, const std::string& subject);

  // The random numbers and the share of time of the current test.
  Random random{0};
  double share_s = 0;

 private:
  struct Rank {
    pw_nic_address address{};
    pw_nic_key key{};
    uint32_t number = 0;
    pw_nic_peer* peer = nullptr;
    pw_nic_remote* remote = nullptr;
    bool dead = false;
  };

  bool answers_within(uint32_t rank, int ms) const;

  Stand& stand_;
  std::vector<std::byte> room_;
  pw_nic_memory* memory_ = nullptr;
  std::array<Rank, kRanks> ranks_;
};

/// Counts the rounds of a test under load: at least `least`, and more while its share of time lasts.
class Rounds {
 public:
  Rounds(double share_s, uint64_t least) : share_s_(share_s), least_(least) {}
  /// Returns whether to do another round. Continues while not enough was seen. Throws Inconclusive if that,
  /// or the least number of rounds, is not reached in many shares of time.
  bool next(bool enough_seen = true);
  [[nodiscard]] uint64_t done() const { return done_; }

 private:
  double share_s_;
  uint64_t least_, done_ = 0, begun_ = now_ns(), cpu_begun_ = thread_time_ns();
};

template <typename Condition>
bool NearEnd::await(Condition&& holds, bool polls) {
  for (const Deadline deadline; !holds();) {
    if (deadline.passed()) return holds();
    if (polls) end.progress();
  }
  return true;
}

}  // namespace pw::nic::check
