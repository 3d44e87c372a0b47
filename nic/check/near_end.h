// The near end of the conformance tests: an open endpoint with its memory, connected to the far ends, and
// what the tests have in common.
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

/// The word that marks round `v`: both halves alike, so that a torn one shows.
inline uint64_t word_of(uint64_t v) { return v << 32 | (v & 0xffffffffu); }
inline bool torn(uint64_t word) { return word >> 32 != (word & 0xffffffffu); }

/// Something that a second thread does again and again for as long as this lives.
class Beside {
 public:
  template <typename Turn>
  explicit Beside(Turn turn)
      : thread_([this, turn]() mutable {
          while (!stop_.load(std::memory_order_relaxed)) turn();
        }) {}
  ~Beside() {
    stop_ = true;
    thread_.join();
  }
  Beside(const Beside&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class NearEnd {
 public:
  /// Throws Broken when the endpoint, its memory, or the far ends' cannot be had.
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

  // Registered memory of this end, for sources and what gets bring.
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
  /// Fills the arena with poison, and has it registered and imported anew.
  void renew(uint32_t rank);
  void release(uint32_t rank);
  void disconnect(uint32_t rank);
  void connect(uint32_t rank);  ///< and import its key
  void kill(uint32_t rank);
  /// Gives everything back, at all ends. Throws Broken.
  void close();

  /// Throw Broken when the far end is gone, or does not answer.
  Reply ask(uint32_t rank, const Command& request) const;
  void tell(uint32_t rank, const Command& request) const;
  Reply hear(uint32_t rank) const;
  /// Whether hear() would give what it says, or that it is gone, at once.
  [[nodiscard]] bool has_answered(uint32_t rank) const { return answers_within(rank, 0); }

  /// As End, from or to this end's memory.
  pw_nic_status put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  pw_nic_status put_copied(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  pw_nic_status get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done);
  /// The same, demanded to be accepted.
  void must_put(uint32_t rank, uint64_t offset, const void* data, uint64_t bytes, Done* done);
  void must_get(uint32_t rank, uint64_t offset, void* data, uint64_t bytes, Done* done);

  /// Until `holds()` is true; false once the deadline has passed. With `polls` false nobody calls the plugin
  /// meanwhile.
  template <typename Condition>
  bool await(Condition&& holds, bool polls = true);
  /// Until the word is that value. Throws Broken: "<what> has not arrived".
  void arrive(uint32_t rank, uint64_t offset, uint64_t value, const std::string& subject);

  // The dice, and the time of the test that runs.
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

/// The rounds of a test under load: at least so many, and more while its share of time lasts.
class Rounds {
 public:
  Rounds(double share_s, uint64_t least) : share_s_(share_s), least_(least) {}
  /// Whether there is one more; there is while not enough was seen. Throws Inconclusive when that, or the
  /// least rounds, are not reached in many shares.
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
