// Messages between two ranks that both expect them: neither lengths nor types are sent. Each rank has a few
// slots at each other rank, which puts fill in turn.
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

  /// Collective over all ranks.
  Mail(peerway::Team& team, peerway::Context& context);
  ~Mail();

  /// Messages between two ranks arrive in the order of the calls. All messages of one call proceed together,
  /// so that two ranks may send to each other messages of any length. A rank cannot send to itself. Throws
  /// peerway::Error.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in);
  void send(int rank, const void* data, size_t bytes);
  void receive(int rank, void* data, size_t bytes);

  /// Posts a word to a rank. Posts have a channel of their own without a common order, in which words wait
  /// until they are read. A post never waits for the other rank, which may itself be waiting for this one.
  /// The other rank has counters for up to 64 different words and a ring for 64 further ones; the rest stay
  /// here until that rank reads them.
  void post(int rank, uint64_t word);
  /// Waits for a word that matches, and takes it. `rank` -1: from any rank.
  void wait(int rank, std::optional<uint64_t> word);

  /// Tells all ranks that this rank ends the job, and has printed why.
  void say_goodbye() noexcept;
  /// Whether another rank has done so.
  [[nodiscard]] bool goodbye_heard() const noexcept;

 private:
  struct Peer;
  class ExchangeRun;

  Peer& peer(int rank);
  static size_t next_run(const Peer& peer, size_t slots);
  bool can_send(Peer& peer, size_t slots);
  void send_run(Peer& peer, const void* data, size_t bytes);
  void take_slot(Peer& peer, void* data, size_t bytes);
  void put_after_slots(Peer& to, size_t at, const void* data, size_t bytes);
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
