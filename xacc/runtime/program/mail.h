// Messages between two ranks that both know of: neither their lengths nor what they are is sent along. From
// each rank to each other there are a few slots, filled by puts in turn.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peerway/peerway.hpp"

namespace pwx {

struct Outgoing {
  int rank;
  const void* data;
  size_t bytes;
};
struct Incoming {
  int rank;
  void* data;
  size_t bytes;
};

class Mail {
 public:
  static constexpr size_t kSlots = 32;
  static constexpr size_t kSlotBytes = 4096;

  /// Collective.
  Mail(peerway::Team& team, peerway::Context& context);
  ~Mail();

  /// Messages between two ranks arrive in the order of the calls. All of one call move at once, so that two
  /// ranks may send to each other whatever the lengths. Not to oneself. Throws peerway::Error.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);
  void send(int rank, const void* data, size_t bytes);
  void receive(int rank, void* data, size_t bytes);

  /// A channel of its own, in which no order is agreed: words that wait until they are looked for. A post
  /// never waits for the other rank, which may itself be waiting for this one. Up to 64 different words are
  /// counted at the other rank, 64 further ones stay there; the rest stay here until that rank reads them.
  void post(int rank, uint64_t word);
  /// Returns once a word that fits has come, and takes it. `rank` -1: of any.
  void wait(int rank, std::optional<uint64_t> word);

  /// This rank ends the job, and has said why.
  void say_farewell() noexcept;
  /// Whether another rank has.
  [[nodiscard]] bool farewell_heard() const noexcept;

 private:
  struct Peer;
  class Course;

  Peer& peer(int rank);
  static size_t next_run(const Peer& peer, size_t slots);
  bool can_send(Peer& peer, size_t slots);
  void send_run(Peer& peer, const void* data, size_t bytes);
  void take_slot(Peer& peer, void* data, size_t bytes);
  void put_beside(Peer& to, size_t at, const void* data, size_t bytes);
  void add_to_backlog(Peer& to, uint64_t word);
  void grow_backlog(Peer& to, uint64_t read);
  void publish_backlog(Peer& to);
  void read_backlog(Peer& from);
  void look_for_words(Peer& peer);
  void look_for_words();
  void wait_for(peerway::Signal& signal, uint64_t value);

  peerway::Context& context_;
  int rank_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::optional<peerway::Region> in_;
  std::optional<peerway::Region> out_;
};

}  // namespace pwx
