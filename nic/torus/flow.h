// The two ends of a reliable flow of packets between two endpoints, without sockets or clocks of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "torus/packet.h"

namespace pw::torus {

using Datagram = std::vector<std::byte>;

/// The packets that were sent and not yet acknowledged. A packet is retransmitted only on evidence that it
/// was lost, not after a timeout. To tell, each transmission has a number of its own (`turn`), and the
/// receiver reports the highest that has arrived: a packet that is missing, and was sent well before that
/// transmission, was lost. If no later transmission follows, this end sends a ping, to which the receiver
/// answers with a report.
class SendWindow {
 public:
  [[nodiscard]] bool room() const { return packets_.size() < kWindow && under_way_ < limit_; }
  [[nodiscard]] bool empty() const { return packets_.empty(); }
  [[nodiscard]] uint64_t next_sequence() const { return first_ + packets_.size(); }
  [[nodiscard]] uint64_t turn() const { return turn_; }  ///< number of the last transmission

  /// Adds packet next_sequence(), sent now. acknowledge() passes on `owner` once the packet has arrived.
  Datagram& push(Datagram datagram, std::shared_ptr<void> owner, uint64_t now);

  /// Reads the other end's report; calls `taken(owner, datagram)` for each acknowledged packet, in order.
  /// Returns false for an impossible report.
  template <typename Taken>
  bool acknowledge(const Report& report, uint64_t now, Taken&& taken);

  /// Calls `send(datagram)` for each packet that was lost.
  template <typename Send>
  void resend(uint64_t now, Send&& send);

  /// Whether to send a ping, with the number turn(). `last`: nothing waits to be sent.
  bool ask(uint64_t now, bool last);

  /// Returns when to ask if nothing happens before; UINT64_MAX: nothing is under way.
  [[nodiscard]] uint64_t next_timer() const {
    return packets_.empty() ? UINT64_MAX : last_event_ + timeout();
  }

 private:
  static constexpr uint64_t kShortest = 200'000, kFirst = 2'000'000, kLongest = 200'000'000;
  /// Limits of packets under way: as few as keep both ends busy. Packets that wait in sockets have left the
  /// caches when they are handled, and a loss is noticed later.
  static constexpr uint32_t kFewestUnderWay = 8, kMostUnderWay = 32;
  static constexpr uint64_t kApart = 3;   ///< transmissions; a smaller distance may be due to reordering
  static constexpr uint32_t kBurst = 16;  ///< after this many packets it pays to ask at once

  struct Packet {
    Datagram datagram;
    std::shared_ptr<void> owner;
    uint64_t sent, turn;
    bool arrived = false, again = false;
  };
  void arrive(Packet& packet, uint64_t now);
  void note_event(uint64_t now) { last_event_ = now, silent_ = 0; }
  [[nodiscard]] uint64_t timeout() const {
    const uint64_t usual = round_trip_ == 0 ? kFirst : round_trip_ + 4 * deviation_ + kShortest;
    return std::min(usual << std::min(silent_, 8u), kLongest);
  }

  std::deque<Packet> packets_;
  uint64_t first_ = 1;  ///< sequence number of packets_[0]
  uint64_t turn_ = 0, newest_arrived_ = 0;
  uint64_t round_trip_ = 0, deviation_ = 0;  ///< mean, and mean deviation from it
  uint64_t last_event_ = 0;                  ///< when something was last sent, or found to have arrived
  uint32_t silent_ = 0;                      ///< questions asked since something was found to have arrived
  uint32_t unasked_ = 0;                     ///< packets since the last question
  uint32_t under_way_ = 0;                   ///< packets that are not known to have arrived
  uint32_t limit_ = kMostUnderWay;           ///< limit of under_way_
};

/// How long a peer that owes an answer has been silent while this end listened. Time in which this process,
/// or the whole host, was stopped does not count, because nobody knows what the peer sent then.
class Silence {
 public:
  static constexpr uint64_t kTimeout = 5'000'000'000;  ///< ns; a peer may also be stopped for a while
  static constexpr uint64_t kMostApart = 200'000'000;  ///< ns between two checks while this end runs

  void end() { lasted_ = 0; }
  /// Call it again and again while the peer is silent; returns whether the silence is too long now.
  bool goes_on(uint64_t now) {
    lasted_ += std::min(now - looked_, kMostApart);
    looked_ = now;
    return lasted_ > kTimeout;
  }

 private:
  uint64_t lasted_ = 0, looked_ = 0;
};

/// Puts the packets that arrived in order.
class ReceiveWindow {
 public:
  /// Calls `take(datagram)` for this packet and those that waited for it, in order. Returns false for a
  /// packet that had arrived before.
  template <typename Take>
  bool arrive(uint64_t sequence, std::span<const std::byte> datagram, Take&& take);
  /// Records that a transmission with this number has arrived.
  void note(uint64_t turn) { newest_ = std::max(newest_, turn); }

  [[nodiscard]] Report report() const { return {expected_ - 1, arrived_, newest_}; }

 private:
  bool shift();  ///< moves on to the next packet; returns whether it has arrived already

  uint64_t expected_ = 1, newest_ = 0;
  std::array<uint64_t, 4> arrived_{};  ///< bit i: expected_ + i
  std::array<Datagram, kWindow> waiting_;
};

inline Datagram& SendWindow::push(Datagram datagram, std::shared_ptr<void> owner, uint64_t now) {
  packets_.push_back({std::move(datagram), std::move(owner), now, ++turn_});
  ++under_way_;
  ++unasked_;
  last_event_ = now;
  return packets_.back().datagram;
}

inline void SendWindow::arrive(Packet& packet, uint64_t now) {
  if (packet.arrived) return;
  packet.arrived = true;
  --under_way_;
  note_event(now);
  if (packet.again) return;  // it is unknown which of the two transmissions arrived
  const uint64_t took = now - packet.sent;
  if (round_trip_ == 0) round_trip_ = took, deviation_ = took / 2;
  const uint64_t apart = took > round_trip_ ? took - round_trip_ : round_trip_ - took;
  deviation_ = (3 * deviation_ + apart) / 4;
  round_trip_ = (7 * round_trip_ + took) / 8;
}

template <typename Taken>
bool SendWindow::acknowledge(const Report& report, uint64_t now, Taken&& taken) {
  if (report.acknowledged >= next_sequence() || report.newest > turn_) return false;
  if (report.newest > newest_arrived_) note_event(now);
  newest_arrived_ = std::max(newest_arrived_, report.newest);
  if (report.acknowledged + 1 < first_) return true;  // an old report
  const size_t count = report.acknowledged + 1 - first_;
  for (size_t i = 0; i < count; ++i) arrive(packets_[i], now);
  for (size_t i = count; i < packets_.size() && i - count < kWindow; ++i)
    if ((report.arrived[(i - count) / 64] >> ((i - count) % 64) & 1) != 0) arrive(packets_[i], now);
  limit_ = static_cast<uint32_t>(std::min<size_t>(kMostUnderWay, limit_ + count));
  for (size_t i = 0; i < count; ++i) {
    Packet packet = std::move(packets_.front());
    packets_.pop_front();
    ++first_;
    taken(std::move(packet.owner), std::move(packet.datagram));
  }
  return true;
}

template <typename Send>
void SendWindow::resend(uint64_t now, Send&& send) {
  const uint64_t newest = newest_arrived_;
  for (Packet& packet : packets_) {
    if (packet.arrived || packet.turn + kApart > newest) continue;
    packet.sent = last_event_ = now;
    packet.turn = ++turn_;
    packet.again = true;
    unasked_ = kBurst;  // asks soon: if it is lost again, the other end cannot use any later packet
    send(packet.datagram);
  }
}

inline bool SendWindow::ask(uint64_t now, bool last) {
  if (packets_.empty()) return false;
  const bool late = now >= next_timer();
  if (!late && !(last && unasked_ >= kBurst)) return false;
  if (late && silent_++ > 0) limit_ = std::max(kFewestUnderWay, limit_ / 2);
  turn_ += kApart;
  unasked_ = 0;
  last_event_ = now;
  return true;
}

inline bool ReceiveWindow::shift() {
  waiting_[expected_ % kWindow].clear();
  ++expected_;
  for (size_t word = 0; word < 4; ++word)
    arrived_[word] = arrived_[word] >> 1 | (word < 3 ? arrived_[word + 1] << 63 : 0);
  return (arrived_[0] & 1) != 0;
}

template <typename Take>
bool ReceiveWindow::arrive(uint64_t sequence, std::span<const std::byte> datagram, Take&& take) {
  if (sequence < expected_ || sequence - expected_ >= kWindow) return false;
  const uint64_t ahead = sequence - expected_;
  if ((arrived_[ahead / 64] >> (ahead % 64) & 1) != 0) return false;
  if (ahead > 0) {
    arrived_[ahead / 64] |= uint64_t{1} << (ahead % 64);
    waiting_[sequence % kWindow].assign(datagram.begin(), datagram.end());
    return true;
  }
  take(datagram);
  while (shift()) take(std::span<const std::byte>(waiting_[expected_ % kWindow]));
  return true;
}

}  // namespace pw::torus
